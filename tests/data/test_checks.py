"""Faults in the input are told before the first step, in one line."""

import pathlib
import tempfile

from absl.testing import parameterized
from rich import console as rich_console
import tensorflow as tf

from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf.data import checks
from swe_tf.data.prepare import job as prepare_job
from swe_tf.data.prepare import manifest
from swe_tf.data.text import pretrain_text
from tests.data import corpus

_VOCAB_SIZE = len(corpus.tokens())


class ChecksTest(tf.test.TestCase, parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.folder = pathlib.Path(folder.name)
    vocab = corpus.write(cls.folder, text=corpus.text(60))
    other = cls.folder / "other.txt"
    other.write_text("\n".join(reversed(corpus.tokens())))
    for name, path in (("shards", vocab), ("others", other)):
      options = prepare_job.Options(
        input=str(cls.folder / "text.txt"),
        vocab=str(path),
        output_dir=str(cls.folder / name),
        seq_length=32,
        num_shards=2,
      )
      prepare_job.prepare(options, rich_console.Console(quiet=True))
    # The same shards, as if Model Garden's script had made them.
    (cls.folder / "bare").mkdir()
    for shard in (cls.folder / "shards").glob("*.tfrecord"):
      (cls.folder / "bare" / shard.name).write_bytes(shard.read_bytes())
    (cls.folder / "unfinished").mkdir()
    (cls.folder / "unfinished" / "a.tfrecord").write_text("")
    (cls.folder / "unfinished" / manifest.JOURNAL_NAME).write_text("")
    (cls.folder / "junk").mkdir()
    (cls.folder / "junk" / "a.tfrecord").write_text("no record at all")
    (cls.folder / "blank").write_text("\n")
    (cls.folder / "binary").write_bytes(b"\0")
    (cls.folder / "no_mask").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")

  def _records(self, name="shards", **changes):
    fields = dict(
      input_path=str(self.folder / name / "*.tfrecord"),
      seq_length=32,
      max_predictions_per_seq=5,
      use_next_sentence_label=False,
    )
    return pretrain_dataloader.BertPretrainDataConfig(**(fields | changes))

  def _text(self, **changes):
    fields = dict(
      input_path=str(self.folder / "text.txt"),
      vocab_file_path=str(self.folder / "vocab.txt"),
      seq_length=32,
    )
    return pretrain_text.PretrainTextDataConfig(**(fields | changes))

  def test_sound_input(self):
    checks.check_input(self._records(), self._text(), vocab_size=_VOCAB_SIZE)
    checks.check_input(self._records("bare"), vocab_size=_VOCAB_SIZE)
    checks.check_input(
      pretrain_dataloader.BertPretrainDataConfig(input_path="dummy"),
      pretrain_dataloader.BertPretrainDataConfig(),
    )

  def _assert_refused(self, message, *configs, vocab_size=_VOCAB_SIZE):
    with self.assertRaisesRegex(errors.UsageError, message) as caught:
      checks.check_input(*configs, vocab_size=vocab_size)
    self.assertNotIn("\n", str(caught.exception))

  @parameterized.parameters("shards", "bare")
  def test_shards_that_do_not_fit(self, name):
    for change in (
      dict(max_predictions_per_seq=6),
      dict(seq_length=64),
      dict(use_v2_feature_names=True) if name == "bare" else dict(seq_length=8),
    ):
      self._assert_refused("set ", self._records(name, **change))
    self._assert_refused("vocab_size", self._records(name), vocab_size=20)

  def test_bad_shards(self):
    self._assert_refused("does not match any files", self._records("nowhere"))
    self._assert_refused("not finished", self._records("unfinished"))
    self._assert_refused("cannot read a record", self._records("junk"))
    self._assert_refused(
      "no sentence pairs", self._records(use_next_sentence_label=True)
    )
    self._assert_refused(
      "is not a shard",
      self._records(input_path=str(self.folder / "shards" / "*")),
    )
    self._assert_refused(
      "task.train_data.input_path: .*x.tfrecord does not match any files",
      self._records(input_path=str(self.folder / "shards" / "x.tfrecord")),
    )

  def test_two_vocabularies(self):
    both = f"{self.folder}/shards/*.tfrecord,{self.folder}/others/*.tfrecord"
    self._assert_refused("different vocabulary", self._records(input_path=both))
    self._assert_refused(
      "different vocabulary", self._records(), self._records("others")
    )
    self._assert_refused(
      "different vocabulary", self._records("others"), self._text()
    )

  def test_bad_text(self):
    for change, message in (
      (dict(vocab_file_path=""), "no vocabulary"),
      (dict(vocab_file_path="nowhere"), "the vocabulary: cannot read"),
      (dict(vocab_file_path=str(self.folder / "no_mask")), r"no \[MASK\]"),
      (dict(input_path=str(self.folder / "blank")), "no text"),
      (dict(input_path=str(self.folder / "binary")), "binary"),
      (dict(input_path=str(self.folder / "nothing*")), "does not match"),
      (dict(tokenizer="sentencepiece"), "wordpiece or character"),
      (dict(tokenizer="character"), "single characters"),
      (dict(use_next_sentence_label=True), "use_next_sentence_label"),
      (dict(max_predictions_per_seq=33), "must not be more"),
      (dict(seq_length=2), "at least 8"),
    ):
      self._assert_refused(message, self._text(**change))
    self._assert_refused("vocab_size", self._text(), vocab_size=20)
