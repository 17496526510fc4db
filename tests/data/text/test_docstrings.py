"""The corpus of docstrings."""

import pathlib
import sys

import tensorflow as tf

from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib


class DocstringsTest(tf.test.TestCase):
  def test_corpus(self):
    before = set(sys.modules)
    folders = [pathlib.Path(self.create_tempdir().full_path) for _ in range(2)]
    first, second = (
      docstrings.write_corpus(
        str(folder), max_bytes=1_000_000, packages=("numpy",)
      )
      for folder in folders
    )
    self.assertEqual(
      set(sys.modules) - before, set(), "A package was imported."
    )
    for path, again in zip(first, second):
      self.assertEqual(
        pathlib.Path(path).read_bytes(), pathlib.Path(again).read_bytes()
      )
    train, validation, vocab = (pathlib.Path(p).read_text() for p in first)
    self.assertBetween(len(train) + len(validation), 900_000, 1_000_000)
    self.assertBetween(len(validation) / len(train), 0.03, 0.08)
    # No document is in both, and no paragraph twice.
    lines = [line for line in (train + validation).split("\n") if line]
    self.assertEqual(len(set(lines)), len(lines))
    self.assertIn("ndarray", train)
    self.assertNotIn(">>>", train)

    # The vocabulary is one of characters, and knows nearly all of them.
    self.assertLen(vocab.rstrip("\n").split("\n"), 69)
    vocabulary = vocab_lib.Vocabulary.load(first.vocab)
    ids = tokenizers.CharacterTokenizer(vocabulary).tokenize([validation])
    unknown = ids.values == vocabulary.id_of("[UNK]")
    self.assertLess(tf.reduce_mean(tf.cast(unknown, tf.float32)), 0.002)

  def test_too_little(self):
    with self.assertRaisesRegex(ValueError, "Raise `max_bytes`"):
      docstrings.write_corpus(
        self.create_tempdir().full_path, max_bytes=100, packages=()
      )
