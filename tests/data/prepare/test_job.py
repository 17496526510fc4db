"""`swe prepare pretraining`: the same bytes always, whole or not at all."""

import gzip
import pathlib
import re
from unittest import mock

from absl.testing import parameterized
import numpy as np
from rich import console as rich_console
import tensorflow as tf

from official.nlp.data import data_loader_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import files
from swe_tf.data import checks
from swe_tf.data import loaders
from swe_tf.data.prepare import job as prepare_job
from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus


def _prepare(**options):
  return prepare_job.prepare(
    prepare_job.Options(**options), rich_console.Console(quiet=True)
  )


def _bytes(folder):
  """Returns the content of a folder by file name."""
  return {p.name: p.read_bytes() for p in pathlib.Path(folder).iterdir()}


class PreparePretrainingTest(tf.test.TestCase, parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    self.options = dict(
      input=f"{self.folder}/a.txt,{self.folder}/b.txt",
      vocab=corpus.write(
        self.folder, a=corpus.text(300), b=corpus.text(200, seed=1)
      ),
      output_dir=str(self.folder / "out"),
      seq_length=64,
      num_shards=3,
      masking="whole_word",
    )

  def _read(self, **changes):
    """Returns all examples through Model Garden's stock loader."""
    fields = dict(
      input_path=str(self.folder / "out" / "*.tfrecord"),
      seq_length=64,
      max_predictions_per_seq=10,
      global_batch_size=8,
      is_training=False,
      drop_remainder=False,
      use_next_sentence_label=False,
    )
    params = pretrain_dataloader.BertPretrainDataConfig(**(fields | changes))
    batches = list(data_loader_factory.get_data_loader(params).load())
    return {
      name: np.concatenate([batch[name] for batch in batches])
      for name in batches[0]
    }

  def test_the_stock_loader_reads_the_shards(self):
    made = _prepare(**self.options)
    corpus_made = made["splits"]["train"]
    self.assertLen(corpus_made["shards"], 3)
    examples = self._read()
    weights = examples["masked_lm_weights"]
    self.assertLen(weights, corpus_made["size"])
    self.assertEqual(weights.sum(), corpus_made["predictions"])
    self.assertEqual(examples["input_mask"].sum(), corpus_made["tokens"])
    # What was masked is known: with it put back, no word of the text is lost.
    ids = examples["input_word_ids"].copy()
    rows, slots = np.nonzero(weights)
    positions = examples["masked_lm_positions"][rows, slots]
    ids[rows, positions] = examples["masked_lm_ids"][rows, slots]
    pieces = np.array(corpus.tokens())[ids].ravel()
    found = " ".join(p for p in pieces if not p.startswith("["))
    text = (self.folder / "a.txt").read_text()
    text += (self.folder / "b.txt").read_text()
    self.assertCountEqual(
      found.replace(" ##", "").split(), re.sub(r"([.!?])", r" \1", text).split()
    )

  def test_bytes_depend_on_the_text_and_the_seed_alone(self):
    with gzip.open(self.folder / "a.txt.gz", "wb") as f:
      f.write((self.folder / "a.txt").read_bytes())
    zipped = dict(input=f"{self.folder}/a.txt.gz,{self.folder}/b.txt")
    first, again, other = (
      self._shards(name, **changes)
      for name, changes in (("1", {}), ("2", zipped), ("3", dict(seed=1)))
    )
    self.assertEqual(first, again)
    self.assertCountEqual(first, other)
    for name in first:
      self.assertNotEqual(first[name], other[name])

  def _shards(self, name, **changes):
    output_dir = str(self.folder / name)
    _prepare(**(self.options | dict(output_dir=output_dir) | changes))
    found = _bytes(output_dir)
    return {n: found[n] for n in found if n.endswith(".tfrecord")}

  def test_a_url_gets_the_same_bytes(self):
    made = _prepare(**self.options)
    for name in ("a.txt", "b.txt", "vocab.txt"):
      content = (self.folder / name).read_bytes()
      files.write_bytes(f"ram://job/{name}", content)
    options = self.options | dict(
      input="ram://job/*a.txt,ram://job/b.txt",
      vocab="ram://job/vocab.txt",
      output_dir="ram://job/out",
    )
    self.assertEqual(_prepare(**options), made)
    self.assertEqual(_prepare(**options), made)
    found = {
      path.name: path.read_bytes()
      for path in files.as_path("ram://job/out").iterdir()
    }
    self.assertEqual(found, _bytes(self.options["output_dir"]))
    # Training reads it there.
    params = pretrain_dataloader.BertPretrainDataConfig(
      input_path="ram://job/out/*.tfrecord",
      seq_length=64,
      max_predictions_per_seq=10,
      global_batch_size=8,
      use_next_sentence_label=False,
    )
    checks.check_input(params, vocab_size=made["vocab_size"])
    straight = list(loaders.build_dataset(params).take(12))
    resumed = next(iter(loaders.build_dataset(params, start_step=11)))
    self.assertAllEqual(
      straight[11]["input_word_ids"], resumed["input_word_ids"]
    )

  def test_goes_on_with_the_missing_shards(self):
    whole = _prepare(**self.options)
    output = pathlib.Path(self.options["output_dir"])
    expected = _bytes(output)
    # As if it was stopped while it wrote the second shard.
    first, second, third = sorted(p.name for p in output.glob("*.tfrecord"))
    shards = whole["splits"]["train"]["shards"]
    journal = whole | {
      "splits": {
        "train": {
          "file": "pretrain-*.tfrecord",
          "size": shards[first]["examples"],
          "tokens": shards[first]["tokens"],
          "predictions": shards[first]["predictions"],
          "shards": {first: shards[first]},
        }
      }
    }
    (output / manifest.FILE_NAME).unlink()
    (output / second).rename(output / f"{second}.x.partial")
    (output / third).unlink()
    (output / f"{manifest.JOURNAL_NAME}.x.partial").touch()
    files.write_json(output / manifest.JOURNAL_NAME, journal)
    modified = (output / first).stat().st_mtime_ns

    with self.assertRaisesRegex(errors.UsageError, "an unfinished job"):
      _prepare(**(self.options | dict(seed=1)))
    self.assertEqual(_prepare(**self.options), whole)
    self.assertEqual(_bytes(output), expected)
    self.assertEqual((output / first).stat().st_mtime_ns, modified)
    # Called once more, it does nothing; another vocabulary is refused.
    self.assertEqual(_prepare(**self.options), whole)
    other = self.folder / "other.txt"
    other.write_text("\n".join(reversed(corpus.tokens())))
    with self.assertRaisesRegex(errors.UsageError, "a finished job"):
      _prepare(**(self.options | dict(vocab=str(other))))
    self.assertEqual(_bytes(output), expected)

  def test_sentence_pairs(self):
    made = _prepare(**(self.options | dict(next_sentence=True, dupe_factor=2)))
    examples = self._read(use_next_sentence_label=True)
    labels = examples["next_sentence_labels"][:, 0]
    self.assertLen(labels, made["splits"]["train"]["size"])
    self.assertBetween(labels.mean(), 0.3, 0.8)
    separator = corpus.tokens().index("[SEP]")
    ids, types = examples["input_word_ids"], examples["input_type_ids"]
    self.assertAllEqual((ids == separator).sum(axis=1), np.full(len(ids), 2))
    # The second part begins after the first [SEP] and ends with the second.
    is_separator = ids == separator
    seen = np.cumsum(is_separator, axis=1) - is_separator
    self.assertAllEqual(types, np.where(examples["input_mask"], seen, 0))

  def test_an_unfinished_job_keeps_the_vocabulary_it_learned(self):
    given = self.options.pop("vocab")
    learning = self.options | dict(learn_vocab=150)
    with mock.patch.object(
      prepare_job, "_write_here", side_effect=KeyboardInterrupt
    ):
      self.assertRaises(KeyboardInterrupt, lambda: _prepare(**learning))
    vocab = pathlib.Path(self.options["output_dir"]) / "vocab.txt"
    learned = vocab.read_bytes()
    with self.assertRaisesRegex(errors.UsageError, "an unfinished job"):
      _prepare(**self.options, vocab=given)
    self.assertEqual(vocab.read_bytes(), learned)
    vocab.unlink()  # As if the job had been killed before it was written.
    made = _prepare(**learning)
    self.assertEqual(vocab.read_bytes(), learned)
    size = len(vocab_lib.Vocabulary.load(vocab))
    self.assertEqual(made["vocab_size"], size)
    self.assertBetween(size, 50, 150)

  @parameterized.parameters(
    (dict(vocab="nowhere.txt"), "the vocabulary: cannot read"),
    (dict(vocab="{folder}/no_mask.txt"), r"has no \[MASK\]"),
    (dict(input="{folder}/nothing*"), "does not match any files"),
    (dict(input="{folder}/empty.txt"), "holds no text"),
    (dict(input="{folder}/binary.txt"), "is a binary file"),
    (dict(input="{folder}/latin1.txt"), r"not UTF-8 \(line 2, byte 8\)"),
    (dict(input="{folder}/broken.txt.gz"), "cannot read"),
    (dict(num_shards=10**6), "ask for fewer"),
    (
      dict(num_shards=10**6, learn_vocab=150, vocab="{folder}/new.txt"),
      "ask for fewer",
    ),
    (dict(max_predictions_per_seq=65), r"not be more than seq_length \(64\)"),
    (dict(output_dir="{folder}/taken"), "not overwritten"),
  )
  def test_bad_input_writes_nothing(self, changes, message):
    (self.folder / "empty.txt").write_text("\n \n")
    (self.folder / "binary.txt").write_bytes(b"\x7fELF\x00\x01text")
    (self.folder / "latin1.txt").write_bytes(b"fine\ncaf\xe9 au lait")
    (self.folder / "broken.txt.gz").write_bytes(b"no gzip")
    (self.folder / "no_mask.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    taken = self.folder / "taken"
    taken.mkdir()
    (taken / "pretrain-00001-of-00003.tfrecord").write_text("precious")
    before = sorted(self.folder.rglob("*"))

    changes = {
      name: value.format(folder=self.folder)
      if isinstance(value, str)
      else value
      for name, value in changes.items()
    }
    with self.assertRaisesRegex(errors.UsageError, message) as caught:
      _prepare(**(self.options | changes))
    self.assertNotIn("\n", str(caught.exception))
    self.assertEqual(sorted(self.folder.rglob("*")), before)
