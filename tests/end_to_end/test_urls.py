"""One run with all its paths in memory: ram:// stands for a bucket.

What a command does there is compared with what it does on a disk. After each
test the working directory, the home and the folder for scratch files must be as
empty as before.
"""

import contextlib
import io
import tempfile

import gin
import matplotlib
import matplotlib.font_manager
import pytest
import tensorflow as tf
import yaml

from swe_tf import cli
from swe_tf import files
from swe_tf.training import checkpoint
from tests import tiny
from tests.data import corpus

matplotlib.get_cachedir()  # It is made in the home, once.
_RAM = "ram://urls"
_LENGTH = 32
_PARTS = ("cwd", "home", "tmp")


@pytest.fixture(scope="module", autouse=True, name="watched")
def fixture_watched(tmp_path_factory):
  """The directories that a command could write to unasked."""
  folder = tmp_path_factory.mktemp("watched")
  for name in _PARTS:
    (folder / name).mkdir()
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(folder / "cwd")
    patch.setenv("HOME", str(folder / "home"))
    patch.setenv("TMPDIR", str(folder / "tmp"))
    patch.setattr(tempfile, "tempdir", None)
    yield folder


@pytest.fixture(autouse=True, name="nothing_is_left")
def fixture_nothing_is_left_on_the_disk(watched):
  yield
  left = {
    str(path.relative_to(watched))
    for path in watched.rglob("*")
    # TensorFlow's own, until the process ends.
    if not path.name.startswith("__autograph_generated_file")
  }
  assert left == set(_PARTS)


def _inputs():
  words = corpus.tokens()
  config = tiny.overrides("unset")
  encoder = config["task"]["model"]["encoder"]["any"]
  encoder |= {"vocab_size": len(words), "max_position_embeddings": _LENGTH}
  for name in ("train_data", "validation_data"):
    config["task"][name] |= {
      "seq_length": _LENGTH,
      "max_predictions_per_seq": 5,
      "use_next_sentence_label": False,
      "global_batch_size": 4,
    }
  config["runtime"] = {"distribution_strategy": "off"}
  return {
    "text/a.txt": corpus.text(60),
    "text/b.txt": corpus.text(60, seed=1),
    "vocab.txt": "".join(f"{word}\n" for word in words),
    "tiny.yaml": yaml.safe_dump(config),
    "none.gin": "import swe_tf.registry\n",
  }


def _swe(command, *arguments, status=0):
  """Runs a command in this process and returns what it prints."""
  gin.clear_config()  # The stock driver locks it, for the only run there is.
  printed = io.StringIO()
  with (
    contextlib.redirect_stdout(printed),
    contextlib.redirect_stderr(printed),
    pytest.raises(SystemExit) as end,
  ):
    cli.main([*command.split(), *arguments])
  assert (end.value.code or 0) == status, printed.getvalue()
  return printed.getvalue()


def _train_flags(root):
  shards = f"{root}/data/*.tfrecord"
  return (
    "--experiment=swe/bert_pretraining",
    f"--config_file={root}/in/tiny.yaml",
    f"--gin_file={root}/in/none.gin",
    f"--params_override=task.train_data.input_path={shards},"
    f"task.validation_data.input_path={shards}",
    f"--model_dir={root}/runs/swe",
  )


@pytest.fixture(scope="module", name="roots")
def fixture_roots(tmp_path_factory):
  """A run on the disk, and the same one in memory."""
  roots = (str(tmp_path_factory.mktemp("local")), _RAM)
  for root in roots:
    for name, text in _inputs().items():
      files.write_text(f"{root}/in/{name}", text)
    _swe(
      "prepare pretraining",
      f"--input={root}/in/text/*.txt",
      f"--vocab={root}/in/vocab.txt",
      f"--output_dir={root}/data",
      f"--seq_length={_LENGTH}",
      "--num_shards=2",
    )
    _swe("train", "--mode=train_and_eval", *_train_flags(root))
  return roots


def test_a_run_is_the_same_and_is_found_again(roots):
  local, ram = (f"{root}/runs/swe" for root in roots)
  output = _swe("diff", local, ram, status=1)  # The paths differ.
  for line in ("curves: equal", "  weights: equal", "  slots: equal"):
    assert line in output
  assert "compared at step 12" in output
  latest = f"{ram}/ckpt-12"
  assert checkpoint.newest_sound(latest) == latest
  texts = [
    _swe("doctor", *_train_flags(root)).replace(root, "ROOT").split("room")[0]
    for root in roots
  ]
  assert texts[0] == texts[1] and "would resume from ckpt-12" in texts[1]


def test_a_report_of_it_is_written(roots):
  for _ in range(2):  # The second one replaces the first.
    _swe("report", f"--runs={_RAM}/runs", f"--output_dir={_RAM}/report")
  assert "report.html" in tf.io.gfile.listdir(f"{_RAM}/report")


def test_a_scheme_that_nobody_knows_is_one_line(roots):
  output = _swe(
    "train",
    "--mode=train",
    *_train_flags(_RAM)[:-1],
    "--model_dir=nosuch://bucket/run",
    status=2,
  )
  assert "nosuch://bucket/run" in output and output.count("\n") == 1
