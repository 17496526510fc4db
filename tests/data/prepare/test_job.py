"""`swe prepare pretraining`: the same bytes always, whole or not at all."""

import contextlib
import gzip
import re

import numpy as np
import pytest

from experiments import index
from official.core import task_factory
from official.nlp.data import data_loader_factory
from swe_tf import errors
from swe_tf import files
from swe_tf.commands import prepare_pretraining
from swe_tf.commands import stock_options
from swe_tf.data import checks
from swe_tf.data.prepare import job as prepare_job
from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.doctor import checks as doctor
from swe_tf.modeling import registry
from tests import tiny
from tests.data import corpus


def _prepare(options, **changes):
  return corpus.prepare(**(options | changes))


def _bytes(folder):
  """Returns the content of a folder by file name."""
  return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(name="options")
def _options(tmp_path):
  vocab = corpus.write(tmp_path, a=corpus.text(300), b=corpus.text(200, seed=1))
  return dict(
    input=f"{tmp_path}/a.txt,{tmp_path}/b.txt",
    vocab=vocab,
    output_dir=f"{tmp_path}/out",
    seq_length=64,
    num_shards=3,
    masking="whole_word",
  )


def _params(folder, **changes):
  fields = dict(
    input_path=f"{folder}/*.tfrecord",
    seq_length=64,
    max_predictions_per_seq=10,
    global_batch_size=8,
  )
  return corpus.shards_config(**(fields | changes))


def _read(folder, **changes):
  """Returns all examples through Model Garden's stock loader."""
  params = _params(folder, is_training=False, drop_remainder=False, **changes)
  batches = list(data_loader_factory.get_data_loader(params).load())
  return {
    name: np.concatenate([batch[name] for batch in batches])
    for name in batches[0]
  }


@pytest.mark.parametrize(
  "size, blocks, width, fresh",
  [
    *(("tiny", 2, 128, fresh) for fresh in (False, True)),
    pytest.param("mini", 4, 256, False, marks=pytest.mark.slow),
    pytest.param("small", 4, 512, False, marks=pytest.mark.slow),
  ],
)
def test_what_it_writes_is_all_that_training_needs(
  tmp_path, options, size, blocks, width, fresh
):
  texts = options.pop("input").split(",")
  configs = [f"{index.ROOT}/experiments/small/{size}.yaml"]
  for text, name in zip(texts, ("data", "validation")):
    own = options | {"input": text, "output_dir": str(tmp_path / name)}
    made = prepare_pretraining.Options(**own, fresh_masks=fresh)
    prepare_pretraining.run(made)
    configs.append(f"{own['output_dir']}/{name}.yaml")
  flags = stock_options.StockOptions(
    experiment="swe/bert_pretraining" + "_text" * fresh,
    config_file=tuple(configs),
    params_override="task.train_data.global_batch_size=8,"
    "task.validation_data.global_batch_size=8,task.sharing.untie_step=1,"
    "trainer.train_steps=2,trainer.steps_per_loop=1,trainer.summary_interval=1",
  )
  config = stock_options.read_config(flags)
  encoder = config.task.model.encoder.any
  assert encoder.vocab_size == len(corpus.tokens())
  assert encoder.max_position_embeddings == 64 and encoder.hidden_size == width
  task = task_factory.get_task(config.task)
  assert task.check_data() == []
  for data in (config.task.train_data, config.task.validation_data):
    batch = next(iter(task.build_inputs(data)))
    assert batch["masked_lm_ids"].shape == (8, 10)
  long = config.replace(trainer={"train_steps": 1000})
  seen = pytest.raises(doctor.Warned, match="times with the same masks")
  with contextlib.nullcontext() if fresh else seen:
    doctor.check_data(long)
  assert doctor.check_data(config)
  trainer = tiny.train(config, tmp_path / "run", 2)
  assert trainer.phase == "unshared"
  assert len(registry.blocks_of(trainer.model)) == blocks


def test_the_stock_loader_reads_the_shards(tmp_path, options):
  made = _prepare(options)["splits"]["train"]
  assert len(made["shards"]) == 3
  examples = _read(tmp_path / "out")
  weights = examples["masked_lm_weights"]
  assert len(weights) == made["size"]
  assert weights.sum() == made["predictions"]
  assert examples["input_mask"].sum() == made["tokens"]
  # What was masked is known: with it put back, no word of the text is lost.
  ids = examples["input_word_ids"].copy()
  rows, slots = np.nonzero(weights)
  positions = examples["masked_lm_positions"][rows, slots]
  ids[rows, positions] = examples["masked_lm_ids"][rows, slots]
  pieces = np.array(corpus.tokens())[ids].ravel()
  found = " ".join(p for p in pieces if not p.startswith("["))
  text = "".join((tmp_path / f"{name}.txt").read_text() for name in "ab")
  assert sorted(found.replace(" ##", "").split()) == sorted(
    re.sub(r"([.!?])", r" \1", text).split()
  )


def test_bytes_depend_on_the_text_and_the_seed_alone(tmp_path, options):
  (tmp_path / "a.txt.gz").write_bytes(
    gzip.compress((tmp_path / "a.txt").read_bytes())
  )
  zipped = {"input": f"{tmp_path}/a.txt.gz,{tmp_path}/b.txt"}
  shards = []
  for name, changes in (("1", {}), ("2", zipped), ("3", {"seed": 1})):
    _prepare(options, output_dir=f"{tmp_path}/{name}", **changes)
    found = _bytes(tmp_path / name)
    shards.append({n: found[n] for n in found if n.endswith(".tfrecord")})
  first, again, other = shards
  assert first == again and first.keys() == other.keys()
  assert all(first[name] != other[name] for name in first)


def test_goes_on_with_the_missing_shards(tmp_path, options):
  whole = _prepare(options)
  output = tmp_path / "out"
  expected = _bytes(output)
  # As if it was stopped while it wrote the second shard.
  first, second, third = sorted(p.name for p in output.glob("*.tfrecord"))
  counts = whole["splits"]["train"]["shards"][first]
  split = {
    "file": "pretrain-*.tfrecord",
    "size": counts["examples"],
    "tokens": counts["tokens"],
    "predictions": counts["predictions"],
    "shards": {first: counts},
  }
  (output / manifest.FILE_NAME).unlink()
  (output / second).rename(output / f"{second}.x.partial")
  (output / third).unlink()
  (output / f"{manifest.JOURNAL_NAME}.x.partial").touch()
  journal = whole | {"splits": {"train": split}}
  files.write_json(output / manifest.JOURNAL_NAME, journal)
  modified = (output / first).stat().st_mtime_ns

  with pytest.raises(errors.UsageError, match="an unfinished job"):
    _prepare(options, seed=1)
  for _ in range(2):  # The second time, it does nothing.
    assert _prepare(options) == whole
    assert _bytes(output) == expected
    assert (output / first).stat().st_mtime_ns == modified
  other = tmp_path / "other.txt"
  other.write_text("\n".join(reversed(corpus.tokens())))
  with pytest.raises(errors.UsageError, match="a finished job"):
    _prepare(options, vocab=str(other))
  assert _bytes(output) == expected


def test_lost_shards_are_made_again_and_cut_ones_refused(tmp_path, options):
  whole = _prepare(options)
  output = tmp_path / "out"
  expected = _bytes(output)
  first, second, third = sorted(output.glob("*.tfrecord"))
  params = _params(output)
  for is_finished in (True, False):
    if not is_finished:
      path = output / manifest.FILE_NAME
      path.rename(output / manifest.JOURNAL_NAME)
    else:
      first.unlink()
      third.unlink()
      with pytest.raises(errors.UsageError, match="lacks 2 of the 3 shards"):
        checks.check_input(params)
      assert _prepare(options) == whole
      assert _bytes(output) == expected
    second.write_bytes(expected[second.name][:-100])
    before = _bytes(output)
    with pytest.raises(errors.UsageError, match=f"{second.name} is cut or has"):
      _prepare(options)
    assert _bytes(output) == before
    if is_finished:
      with pytest.raises(errors.UsageError, match=f"{second.name} is cut or"):
        checks.check_input(params)
    second.unlink()
    assert _prepare(options) == whole
    assert _bytes(output) == expected


def test_copies_have_masks_of_their_own(tmp_path, options):
  once = _prepare(options)["splits"]["train"]
  twice = _prepare(options, output_dir=str(tmp_path / "2"), dupe_factor=2)
  assert twice["splits"]["train"]["size"] == 2 * once["size"]
  examples = _read(tmp_path / "2")
  rows = {row.tobytes() for row in examples["input_word_ids"]}
  assert len(rows) > 1.5 * once["size"]


def test_an_unfinished_job_keeps_the_vocabulary_it_learned(
  tmp_path, options, monkeypatch
):
  learning = options | dict(vocab=None, learn_vocab=150)

  def stop(*_):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
    patch.setattr(prepare_job, "_write_shards", stop)
    _prepare(learning)
  vocab = tmp_path / "out/vocab.txt"
  learned = vocab.read_bytes()
  with pytest.raises(errors.UsageError, match="an unfinished job"):
    _prepare(options)
  assert vocab.read_bytes() == learned
  vocab.unlink()  # As if the job had been killed before it was written.
  made = _prepare(learning)
  assert vocab.read_bytes() == learned
  with pytest.raises(errors.UsageError, match="a finished job"):
    _prepare(learning | {"learn_vocab": 140})
  size = len(vocab_lib.Vocabulary.load(vocab))
  assert made["vocab_size"] == size and 50 < size <= 150


@pytest.mark.parametrize(
  "changes, message",
  [
    (dict(vocab="{folder}/special.txt"), "has 5 special tokens and no other"),
    (dict(vocab="{folder}/cased.txt"), r"% .* \[UNK\].*set lower_case to fal"),
    (
      dict(input="{folder}/upper.txt", lower_case=False),
      r"100% of the tokens are \[UNK\].* set lower_case to true",
    ),
    (dict(vocab="{folder}/foreign.txt"), r"100% .* \[UNK\].* of this text"),
    (dict(input="{folder}/nothing*"), "does not match any files"),
    (dict(input="{folder}/latin1.txt"), r"not UTF-8 \(line 2, byte 8\)"),
    (dict(input="{folder}/broken.txt.gz"), "cannot read"),
    (dict(num_shards=10**6), "ask for fewer"),
    (dict(max_predictions_per_seq=65), r"not be more than seq_length \(64\)"),
    (dict(output_dir="{folder}/taken"), "not overwritten"),
  ],
)
def test_bad_input_writes_nothing(tmp_path, options, changes, message):
  (tmp_path / "taken").mkdir()
  special = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
  upper = "\n".join(
    token.upper() for token in corpus.tokens() if token[0] > "a"
  )
  for name, content in {
    "special.txt": special,
    "cased.txt": special + upper.encode(),
    "upper.txt": b"BAFI DE GO\n" * 5,
    "foreign.txt": special + b"xylo\n##zz\n",
    "latin1.txt": b"fine\ncaf\xe9 au lait",
    "broken.txt.gz": b"no gzip",
    "taken/pretrain-00001-of-00003.tfrecord": b"precious",
  }.items():
    (tmp_path / name).write_bytes(content)
  before = sorted(tmp_path.rglob("*"))
  for name, value in changes.items():
    if isinstance(value, str):
      changes = changes | {name: value.format(folder=tmp_path)}
  with pytest.raises(errors.UsageError, match=message) as caught:
    _prepare(options, **changes)
  assert "\n" not in str(caught.value)
  assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("scheme", ["", "ram://"])
def test_splits(tmp_path, scheme):
  directory = files.as_path(f"{scheme}{tmp_path}" if scheme else tmp_path)
  splits = {
    "train": {"file": "train.tf_record", "size": 7},
    "dev": {"file": "dev.tf_record", "size": 3, "labelled": False},
  }
  content = manifest.make(manifest.GLUE, task="SST-2", splits=splits)
  files.write_json(directory / manifest.FILE_NAME, content)
  files.write_text(directory / "train.tf_record", "")
  with pytest.raises(errors.UsageError, match="dev.tf_record is not there"):
    manifest.read(directory)
  files.write_text(directory / "dev.tf_record", "")
  data = manifest.read(str(directory))
  assert data.meta == content and not data.is_squad
  assert data.path == directory / manifest.FILE_NAME
  assert data.train == manifest.Split(
    "train", str(directory / "train.tf_record"), 7, True
  )
  assert [split.labelled for split in data.splits_of("dev")] == [False]


@pytest.mark.parametrize(
  "content, message",
  [
    (None, "has no manifest.json of GLUE or SQuAD"),
    ({"kind": "glue", "format_version": 3}, "format_version is not 2; prepare"),
    (manifest.make("glue", splits={"dev": {}}), "its splits are not"),
    ({"report": 1}, 'json:1: no "kind"; is it from `swe prepare`'),
  ],
)
def test_what_is_not_glue_or_squad(tmp_path, content, message):
  if content is not None:
    files.write_json(tmp_path / manifest.FILE_NAME, content)
  with pytest.raises(errors.UsageError, match=message) as caught:
    manifest.read(tmp_path)
  assert "\n" not in str(caught.value)
