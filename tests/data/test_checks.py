"""Faults in the input are told before the first step, in one line."""

import pytest
from rich import console as rich_console

from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf.data import checks
from swe_tf.data.prepare import job as prepare_job
from swe_tf.data.prepare import manifest
from swe_tf.data.text import pretrain_text
from tests.data import corpus

_VOCAB_SIZE = len(corpus.tokens())


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("checks")
  vocab = corpus.write(folder, text=corpus.text(60))
  other = folder / "other.txt"
  other.write_text("\n".join(reversed(corpus.tokens())))
  for name, path in (("shards", vocab), ("others", other)):
    options = prepare_job.Options(
      input=f"{folder}/text.txt",
      vocab=str(path),
      output_dir=f"{folder}/{name}",
      seq_length=32,
      num_shards=2,
    )
    prepare_job.prepare(options, rich_console.Console(quiet=True))
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
  (folder / "no_mask").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
  return folder


def _records(folder, name="shards", **changes):
  fields = dict(
    input_path=f"{folder}/{name}/*.tfrecord",
    seq_length=32,
    max_predictions_per_seq=5,
    use_next_sentence_label=False,
  )
  return pretrain_dataloader.BertPretrainDataConfig(**(fields | changes))


def _text(folder, **changes):
  fields = dict(
    input_path=f"{folder}/text.txt",
    vocab_file_path=f"{folder}/vocab.txt",
    seq_length=32,
  )
  return pretrain_text.PretrainTextDataConfig(**(fields | changes))


def test_sound_input(folder):
  for configs in (
    (_records(folder), _text(folder)),
    (_records(folder, "bare"),),
    (_records(folder, input_path="dummy"), _records(folder, input_path="")),
  ):
    checks.check_input(*configs, vocab_size=_VOCAB_SIZE)


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
    ("nowhere", {}, "does not match any files"),
    ("unfinished", {}, "not finished"),
    ("junk", {}, "cannot read a record"),
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
    (dict(input_path=f"{folder}/nothing*"), "does not match"),
    (dict(tokenizer="sentencepiece"), "wordpiece or character"),
    (dict(tokenizer="character"), "single characters"),
    (dict(use_next_sentence_label=True), "use_next_sentence_label"),
    (dict(max_predictions_per_seq=33), "must not be more"),
    (dict(seq_length=2), "at least 8"),
  ):
    _assert_refused(message, _text(folder, **change))
