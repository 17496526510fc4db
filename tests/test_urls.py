"""Every command with all its paths in memory: ram:// stands for a bucket.

What a command does there is compared with what it does on a disk. After each
test the working directory, the home and the folder for scratch files must be as
empty as before.
"""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import tempfile

import gin
import matplotlib
import matplotlib.font_manager
import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy
import tensorflow as tf
import tf_keras
import yaml

from swe_tf import cli
from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.doctor.tpu import programs as tpu
from swe_tf.scoring import glue_predictions
from swe_tf.studies import experiments
from swe_tf.studies import jobs
from swe_tf.studies import study_file
from swe_tf.studies import sweep
from swe_tf.studies import worker
from swe_tf.studies.finetune import jobs as finetune_jobs
from swe_tf.training import sound_checkpoint
from tests import tiny
from tests.analysis import fake_runs
from tests.convert import test_huggingface_import as huggingface
from tests.data import corpus
from tests.studies.finetune import runs as finetune_runs

matplotlib.get_cachedir()  # It is made in the home, once.
_RAM = "ram://urls"
_LENGTH = 32
_PARTS = ("cwd", "home", "tmp")
# What has no paths.
_WITHOUT_PATHS = {"completion", "experiments"}
# Their runs are in processes of their own, which do not see this memory.
_OF_MANY_RUNS = {"sweep", "finetune", "demo", "pilot"}


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


@pytest.fixture(scope="module", name="roots")
def fixture_roots(tmp_path_factory):
  """A directory on the disk, and one in memory, with the same inputs."""
  roots = (str(tmp_path_factory.mktemp("local")), _RAM)
  for root in roots:
    for name, text in _inputs().items():
      files.write_text(f"{root}/in/{name}", text)
  return roots


def _inputs():
  words = corpus.tokens()
  rng = np.random.default_rng(0)
  sentences = [" ".join(rng.choice(words[10:50], 6)) for _ in range(32)]
  rows = [f"{text}\t{i % 2}" for i, text in enumerate(sentences)]
  paragraphs = [
    {
      "context": text,
      "qas": [
        {
          "id": f"q{i}",
          "question": "gogo lulu ?",
          "answers": [{"text": text.split()[0], "answer_start": 0}],
        }
      ],
    }
    for i, text in enumerate(sentences)
  ]
  squad = {"data": [{"title": "", "paragraphs": paragraphs}]}
  config = tiny.overrides("unset")
  encoder = config["task"]["model"]["encoder"]["any"]
  encoder |= {
    "vocab_size": len(words),
    "max_position_embeddings": _LENGTH,
    "type_vocab_size": 2,
  }
  for name in ("train_data", "validation_data"):
    config["task"][name] |= {
      "seq_length": _LENGTH,
      "max_predictions_per_seq": 5,
      "use_next_sentence_label": False,
      "global_batch_size": 4,
    }
  config["runtime"] = {"distribution_strategy": "off"}
  study = {
    "experiment": "swe/bert_pretraining",
    "config_files": ["tiny.yaml"],
    "axes": {"method": ["baseline", "swe"], "seed": [1]},
  }
  return {
    "text/a.txt": corpus.text(60),
    "text/b.txt": corpus.text(60, seed=1),
    "vocab.txt": "".join(f"{word}\n" for word in words),
    "SST-2/train.tsv": "\n".join(["sentence\tlabel", *rows, ""]),
    "SST-2/dev.tsv": "\n".join(["sentence\tlabel", *rows[:9], ""]),
    "squad.json": json.dumps(squad),
    "tiny.yaml": yaml.safe_dump(config),
    "study.yaml": yaml.safe_dump(study),
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


def _tree(root):
  """Returns all files under a directory by their relative paths."""
  found = {}
  for place, _, names in tf.io.gfile.walk(root):
    for name in names:
      path = f"{place.rstrip('/')}/{name}"
      found[path.removeprefix(f"{root}/")] = files.read_bytes(path)
  return found


def _prepare(root):
  vocab = f"--vocab={root}/in/vocab.txt"
  data = f"{root}/data"
  return [
    _swe(
      "prepare pretraining",
      f"--input={root}/in/text/*.txt",
      vocab,
      f"--output_dir={data}/shards",
      f"--seq_length={_LENGTH}",
      "--num_shards=2",
    ),
    _swe(
      "prepare glue",
      "--task=SST-2",
      f"--input_dir={root}/in/SST-2",
      vocab,
      f"--output_dir={data}/SST-2",
      f"--max_seq_length={_LENGTH}",
    ),
    *(
      _swe(
        "prepare squad",
        "--version=1.1",
        f"--input={root}/in/squad.json",
        f"--split={split}",
        vocab,
        f"--output_dir={data}/squad_v1.1",
        f"--max_seq_length={_LENGTH}",
        "--max_query_length=8",
      )
      for split in ("train", "eval")
    ),
  ]


@pytest.fixture(scope="module", name="prepared")
def fixture_prepared(roots):
  for root in roots:
    _prepare(root)
  return roots


def _data(root):
  return (
    f"task.train_data.input_path={root}/data/shards/*.tfrecord,"
    f"task.validation_data.input_path={root}/data/shards/*.tfrecord"
  )


def _train_flags(root):
  return (
    "--experiment=swe/bert_pretraining",
    f"--config_file={root}/in/tiny.yaml",
    f"--gin_file={root}/in/none.gin",
    f"--params_override={_data(root)}",
    f"--model_dir={root}/runs/swe",
  )


@pytest.fixture(scope="module", name="trained")
def fixture_trained(prepared):
  for root in prepared:
    _swe("train", "--mode=train_and_eval", *_train_flags(root))
  return prepared


def test_prepared_data_is_the_same(prepared):
  local, ram = (_tree(f"{root}/data") for root in prepared)
  assert local.keys() == ram.keys()
  assert len([name for name in ram if name.endswith("manifest.json")]) == 3
  assert local == ram
  output = _swe(
    "prepare pretraining",
    f"--input={_RAM}/in/text/*.txt",
    f"--vocab={_RAM}/in/vocab.txt",
    f"--output_dir={_RAM}/data/more",
    "--jobs=2",
    status=2,
  )
  assert "ram:// is the memory of one process" in output
  assert output.count("\n") == 1


def test_a_run_is_the_same_and_is_found_again(trained):
  local, ram = (f"{root}/runs/swe" for root in trained)
  output = _swe("diff", local, ram, status=1)
  for line in ("curves: equal", "  weights: equal", "  slots: equal"):
    assert line in output
  assert "compared at step 12" in output
  latest = f"{ram}/ckpt-12"
  assert sound_checkpoint.newest_sound(latest) == latest
  texts = [
    _swe("doctor", *_train_flags(root)).replace(root, "ROOT").split("room")[0]
    for root in trained
  ]
  assert texts[0] == texts[1] and "would resume from ckpt-12" in texts[1]
  for root in trained:
    flags = (*_train_flags(root), f"--output={root}/cost.json")
    _swe("doctor cost", *flags)
  costs = [files.read_bytes(f"{root}/cost.json") for root in trained]
  assert costs[0] == costs[1]


def test_the_compiler_reads_a_local_copy(prepared, monkeypatch):
  asked = []

  def compile_program(command, **unused):
    asked.append(pathlib.Path(command[3]).read_bytes())
    report = dict.fromkeys(tpu.QUANTITIES, 1.0) | {"seconds": 1.0}
    return subprocess.CompletedProcess(command, 0, json.dumps(report), "")

  monkeypatch.setattr(tpu, "require_compiler", lambda: "fake 1")
  monkeypatch.setattr(tpu.subprocess, "run", compile_program)
  flags = ("--topology=v5e:2x2", "--depths=1", f"--output_dir={_RAM}/tpu")
  _swe("doctor tpu", *_train_flags(_RAM), *flags)
  found = _tree(f"{_RAM}/tpu")
  programs = [found[name] for name in found if name.endswith(".hlo_pb")]
  assert "tpu.json" in found and sorted(programs) == sorted(asked)
  assert len(asked) > 1


def _fine_tune(task):
  """Trains a run of a task by a function call; returns its directory."""
  run = finetune_runs.make_run(
    f"{_RAM}/column/{task}",
    f"{_RAM}/data/{task}",
    f"{_RAM}/runs/swe",
    learning_rate=1e-3,
    epochs=1.0,
    params_override="task.train_data.global_batch_size=8,"
    "runtime.distribution_strategy=off",
  )
  finetune_jobs.train(worker.Job(run.directory.path))
  return str(run.directory.path)


def test_fine_tuned_and_scored(trained):
  run = _fine_tune("SST-2")
  names = {name.rpartition("/")[2] for name in _tree(run)}
  assert {"result.json", "run.json", "checkpoint", "dev.tsv"} <= names
  scored = _swe(
    "score",
    "glue",
    "--task=SST-2",
    f"--data={_RAM}/in/SST-2/dev.tsv",
    f"--predictions={run}/dev.tsv",
  )
  accuracy = files.read_json(f"{run}/result.json")["scores"]["dev"]["accuracy"]
  assert json.loads(scored)["accuracy"] == pytest.approx(accuracy)
  run = _fine_tune("squad_v1.1")
  scored = _swe(
    "score",
    "squad",
    "--version=1.1",
    f"--data={_RAM}/in/squad.json",
    f"--predictions={run}/predictions.json",
  )
  f1 = files.read_json(f"{run}/result.json")["scores"]["eval"]["f1"]
  assert json.loads(scored)["f1"] == pytest.approx(f1)


def test_a_report_is_the_same(roots):
  for name, sharing in (("a", None), ("b", fake_runs.swe())):
    config = fake_runs.config(sharing=sharing)
    fake_runs.write_run(pathlib.Path(roots[0]) / "fake" / name, config, 2.0)
  for name, content in _tree(f"{roots[0]}/fake").items():
    files.write_bytes(f"{_RAM}/fake/{name}", content)
  for root in roots:
    for _ in range(2):  # The second one replaces the first.
      _swe("report", f"--runs={root}/fake", f"--output_dir={root}/fake_report")
  local, ram = (_tree(f"{root}/fake_report") for root in roots)
  assert local == ram and "report.html" in ram


def test_a_submission_is_the_same(roots):
  for root in roots:
    for name, task in glue_tasks.SUBMISSIONS.items():
      if name in ("MNLI-m", "MNLI-mm", "AX", "QNLI", "QQP", "SST-2"):
        folder = "QNLI/best" if name == "QNLI" else name
        glue_predictions.write_predictions(
          files.as_path(f"{root}/predictions/{folder}/predictions.tsv"),
          dict.fromkeys(range(task.submissions[name]), 0),
          task,
        )
    selection = f"{root}/predictions/QNLI/selection.json"
    files.write_json(selection, {"best": "best"})
    output = f"{root}/glue.zip"
    _swe("submission", f"--runs={root}/predictions", f"--output={output}")
  local, ram = (files.read_bytes(f"{root}/glue.zip") for root in roots)
  assert local == ram


def test_encoders_go_out(trained):
  for name in ("savedmodel", "model_garden"):
    for root in trained:
      _swe(
        "export",
        f"--checkpoint={root}/runs/swe",
        f"--format={name}",
        f"--output_dir={root}/out/{name}",
        f"--config_file={root}/runs/swe/params.yaml",
      )
  local, ram = (_tree(f"{root}/out") for root in trained)
  assert local.keys() == ram.keys()
  ids = tf.ones([1, 4], tf.int32)
  inputs = dict.fromkeys(
    ("input_word_ids", "input_mask", "input_type_ids"), ids
  )
  outputs = [
    tf.saved_model.load(f"{root}/out/savedmodel")(inputs)["default"].numpy()
    for root in trained
  ]
  np.testing.assert_array_equal(*outputs)


def test_encoders_come_in_and_go_out_again(roots):
  tensors = huggingface._tensors(np.random.default_rng(0))
  for root in roots:
    folder = f"{root}/huggingface"
    files.write_json(f"{folder}/config.json", huggingface._CONFIG)
    tokens = [*vocab_lib.SPECIAL_TOKENS, *"abcdef"]
    files.write_text(f"{folder}/vocab.txt", "\n".join(tokens))
    weights = safetensors_numpy.save(tensors)
    files.write_bytes(f"{folder}/model.safetensors", weights)
    _swe("import", f"--input_dir={folder}", f"--output_dir={root}/imported")
    _swe(
      "export",
      f"--checkpoint={root}/imported",
      "--format=huggingface",
      f"--output_dir={root}/exported",
    )
  local, ram = (_tree(f"{root}/exported") for root in roots)
  assert local == ram
  back = safetensors_numpy.load(ram["model.safetensors"])
  for name, value in tensors.items():
    np.testing.assert_array_equal(back[name], value)


@pytest.mark.slow
def test_a_run_is_what_it_is_on_a_disk(trained):
  for root in trained:
    study = study_file.read_study(f"{root}/in/study.yaml")
    configs = experiments.make_configs(study, _data(root))
    runs = sweep.make_runs(study, configs, f"{root}/study")
    for run in runs:
      run.begin()
      tf_keras.backend.clear_session()
      jobs.train(worker.Job(run.directory.path))
    sweep.write_study(study, f"{root}/study")
    with pytest.raises(errors.UsageError, match="but now it is 99"):
      more = experiments.make_configs(
        study, f"{_data(root)},task.train_data.global_batch_size=99"
      )
      sweep.make_runs(study, more, f"{root}/study")
  for run in runs:
    output = _swe(
      *("diff", f"{trained[0]}/study/{run.name}", f"{_RAM}/study/{run.name}"),
      status=1,
    )
    assert "curves: equal" in output and "weights: equal" in output


def test_theory_is_the_same(roots):
  for root in roots:
    _swe("theory", "proposition1", f"--output_dir={root}/theory")
  local, ram = (_tree(f"{root}/theory") for root in roots)
  assert local == ram
  assert {"claims.json", "claims.md", "proposition1.png"} == ram.keys()


def test_a_scheme_that_nobody_knows_is_one_line(roots):
  output = _swe(
    "train",
    "--mode=train",
    *_train_flags(_RAM)[:-1],
    "--model_dir=nosuch://bucket/run",
    status=2,
  )
  assert "nosuch://bucket/run" in output and output.count("\n") == 1


def test_every_command_is_here():
  source = pathlib.Path(__file__).read_text(encoding="utf-8")
  tested = set(re.findall(r'_swe\(\s*"([a-z ]+)"', source))
  assert tested == set(cli.COMMANDS) - _WITHOUT_PATHS - _OF_MANY_RUNS
