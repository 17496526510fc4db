"""Faults in the input: told before the first step, and which file it was."""

import gzip

import pytest
import tensorflow as tf

from official.nlp.data import sentence_prediction_dataloader
from swe_tf import errors
from swe_tf.data import bad_shards
from swe_tf.data import checks
from swe_tf.data import loaders
from swe_tf.data.prepare import manifest
from tests.data import corpus

_VOCAB_SIZE = len(corpus.tokens())


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("checks")
  vocab = corpus.write(folder, text=corpus.text(60))
  other = folder / "other.txt"
  other.write_text("\n".join(reversed(corpus.tokens())))
  for name, path in (("shards", vocab), ("others", other)):
    corpus.prepare(
      input=f"{folder}/text.txt",
      vocab=str(path),
      output_dir=f"{folder}/{name}",
      seq_length=32,
      num_shards=2,
    )
  for name in ("bare", "unfinished", "junk"):
    (folder / name).mkdir()
  # The same shards, as if Model Garden's script had made them.
  for shard in (folder / "shards").glob("*.tfrecord"):
    (folder / "bare" / shard.name).write_bytes(shard.read_bytes())
  (folder / "unfinished" / "a.tfrecord").write_text("")
  (folder / "unfinished" / manifest.JOURNAL_NAME).write_text("")
  (folder / "junk" / "a.tfrecord").write_text("no record at all")
  (folder / "blank").write_text("\n")
  (folder / "binary").write_bytes(b"\0")
  (folder / "short.txt").write_text("bafi dego.\n\n")
  cased = [token.upper() for token in corpus.tokens()]
  (folder / "cased").write_text("\n".join(cased).replace("UNUSED", "unused"))
  mixed = [*corpus.tokens(), *(f"Name{i}" for i in range(9))]
  (folder / "mixed").write_text("\n".join(mixed))
  with tf.io.TFRecordWriter(f"{folder}/junk/b.tfrecord") as writer:
    record = next(iter(tf.data.TFRecordDataset(_first(folder / "shards"))))
    example = tf.train.Example.FromString(record.numpy())
    weights = example.features.feature["masked_lm_weights"].float_list
    weights.value[:] = [0.0] * len(weights.value)
    writer.write(example.SerializeToString())
  (folder / "no_mask").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
  return folder


def _first(folder):
  return str(min(folder.glob("*.tfrecord")))


def _records(folder, name="shards", **changes):
  fields = dict(
    input_path=f"{folder}/{name}/*.tfrecord",
    seq_length=32,
    global_batch_size=4,
    max_predictions_per_seq=5,
  )
  return corpus.shards_config(**(fields | changes))


def _text(folder, **changes):
  fields = dict(
    input_path=f"{folder}/text.txt",
    vocab_file_path=f"{folder}/vocab.txt",
    seq_length=32,
    global_batch_size=4,
  )
  return loaders.PretrainTextDataConfig(**(fields | changes))


def test_sound_input(folder):
  for configs in (
    (_records(folder), _text(folder)),
    (_records(folder, "bare"),),
    (_records(folder, input_path="dummy"), _records(folder, input_path="")),
  ):
    assert not checks.check_input(*configs, vocab_size=_VOCAB_SIZE)


def test_warnings(folder):
  validation = _text(folder, is_training=False)
  (same,) = checks.check_input(_text(folder), validation)
  assert "1 of the 1 files of task.validation_data are also trained on" in same
  (other,) = checks.check_input(
    _records(folder), _text(folder, is_training=False, masking="whole_word")
  )
  assert other.startswith("task.validation_data has masking=whole_word, ")
  assert f"but {folder}/shards has masking=random, masking_rate=0.15" in other
  (cased,) = checks.check_input(
    _text(folder, vocab_file_path=f"{folder}/mixed")
  )
  assert "cased ('Name0'), but the text is lower-cased; set lower_case" in cased
  short = _text(
    folder,
    input_path=f"{folder}/short.txt",
    is_training=False,
    drop_remainder=False,
  )
  assert not checks.check_input(short)


def _assert_refused(message, *configs, vocab_size=_VOCAB_SIZE):
  with pytest.raises(errors.UsageError, match=message) as caught:
    checks.check_input(*configs, vocab_size=vocab_size)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  "name, change, message",
  [
    *((n, {"max_predictions_per_seq": 6}, "set ") for n in ("shards", "bare")),
    *((n, {"seq_length": 64}, "set ") for n in ("shards", "bare")),
    ("bare", {"use_v2_feature_names": True}, "set "),
    ("unfinished", {}, "not finished"),
    ("junk", {}, "cannot read a record"),
    (
      "junk",
      {"input_path": "{folder}/junk/b.tfrecord"},
      "has no token to predict in its first 1 records",
    ),
    *(
      (name, {"global_batch_size": 10**6, **more}, "less than a batch; lower ")
      for name in ("shards", "bare")
      for more in ({}, {"is_training": False})
    ),
    ("shards", {"use_next_sentence_label": True}, "no sentence pairs"),
    ("shards", {"input_path": "{folder}/shards/*"}, "is not a shard"),
    (
      "shards",
      {"input_path": "{folder}/x.tfrecord"},
      "task.train_data.input_path: .*x.tfrecord does not match any files",
    ),
  ],
)
def test_bad_shards(folder, name, change, message):
  if "input_path" in change:
    change = {"input_path": change["input_path"].format(folder=folder)}
  _assert_refused(message, _records(folder, name, **change))


@pytest.mark.parametrize("name", ["shards", "bare"])
def test_a_model_without_room(folder, name):
  _assert_refused("vocab_size", _records(folder, name), vocab_size=20)
  _assert_refused("vocab_size", _text(folder), vocab_size=20)


def test_two_vocabularies(folder):
  both = f"{folder}/shards/*.tfrecord,{folder}/others/*.tfrecord"
  others = _records(folder, "others")
  for configs in (
    (_records(folder, input_path=both),),
    (_records(folder), others),
    (others, _text(folder)),
  ):
    _assert_refused("different vocabulary", *configs)


def test_bad_text(folder):
  for change, message in (
    (dict(vocab_file_path=""), "no vocabulary"),
    (dict(vocab_file_path="nowhere"), "the vocabulary: cannot read"),
    (dict(vocab_file_path=f"{folder}/no_mask"), r"no \[MASK\]"),
    (dict(input_path=f"{folder}/blank"), "no text"),
    (dict(input_path=f"{folder}/binary"), "binary"),
    (dict(input_path=[None]), "neither a pattern nor a list of patterns"),
    (dict(tokenizer="character"), "single characters"),
    (dict(use_next_sentence_label=True), "use_next_sentence_label"),
    (dict(vocab_file_path=f"{folder}/cased"), "88% .*set lower_case to false"),
    (dict(global_batch_size=10**6), "train_data has .* less than a batch"),
    (
      dict(input_path=f"{folder}/short.txt", is_training=False),
      r"validation_data has 1 example\(s\), which is less than a batch",
    ),
  ):
    _assert_refused(message, _text(folder, **change))


_LOST = tf.errors.DataLossError(None, None, "inflate() failed")


def _shards(config, *paths):
  params = config(input_path=[str(path) for path in paths])
  return bad_shards.Shards.of("train_data", params)


def test_text_that_is_cut(tmp_path):
  sound, cut = tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"
  for path in (sound, cut):
    path.write_bytes(gzip.compress(b"A line.\n" * 10_000))
  shards = _shards(loaders.PretrainTextDataConfig, sound, cut)
  cut.write_bytes(cut.read_bytes()[:-40])
  with pytest.raises(bad_shards.BadShards) as e, shards.named():
    raise _LOST
  assert f"{cut} (" in str(e.value) and str(sound) not in str(e.value)


def test_records_of_another_task(tmp_path):
  paths = [tmp_path / name for name in ("train.tf_record", "more.tf_record")]
  for path in paths:
    with tf.io.TFRecordWriter(str(path)) as writer:
      for _ in range(3):
        writer.write(b"whatever the task has")
  shards = _shards(
    sentence_prediction_dataloader.SentencePredictionDataConfig, *paths
  )
  with pytest.raises(tf.errors.DataLossError), shards.named():
    raise _LOST  # No file can be blamed.
  paths[1].write_bytes(paths[1].read_bytes()[:-5])
  with pytest.raises(bad_shards.BadShards, match="after 2 good records"):
    with shards.named():
      raise _LOST
  paths[0].unlink()
  with pytest.raises(bad_shards.BadShards) as e, shards.named():
    raise _LOST
  assert f"{paths[0]} (it no longer exists)" in str(e.value)
  assert str(paths[1]) in str(e.value)
  with pytest.raises(tf.errors.ResourceExhaustedError), shards.named():
    raise tf.errors.ResourceExhaustedError(None, None, "not the data's fault")
