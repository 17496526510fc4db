"""The corpus of docstrings."""

import pathlib
import sys

import numpy as np
import pytest

from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib


def test_corpus(tmp_path):
  before = set(sys.modules)
  first, second = (
    docstrings.write_corpus(f"{tmp_path}/{name}", 1_000_000, packages=["numpy"])
    for name in "ab"
  )
  assert set(sys.modules) == before, "A package was imported."
  train, validation, vocab = (pathlib.Path(path).read_text() for path in first)
  assert [train, validation, vocab] == [
    pathlib.Path(path).read_text() for path in second
  ]
  assert 900_000 < len(train) + len(validation) < 1_000_000
  assert 0.03 < len(validation) / len(train) < 0.08
  # No document is in both, and no paragraph twice.
  lines = [line for line in (train + validation).split("\n") if line]
  assert len(set(lines)) == len(lines)
  assert "ndarray" in train and ">>>" not in train
  # The vocabulary is one of characters, and knows nearly all of them.
  assert len(vocab.rstrip("\n").split("\n")) == 69
  vocabulary = vocab_lib.Vocabulary.load(first.vocab)
  ids = tokenizers.CharacterTokenizer(vocabulary).tokenize([validation])
  assert np.mean(ids.values == vocabulary.id_of("[UNK]")) < 0.002
  with pytest.raises(ValueError, match="Raise `max_bytes`"):
    docstrings.write_corpus(str(tmp_path), max_bytes=100, packages=())
