"""Models on characters, such as the demo's: the same ids as in pre-training.

That answers come back as words is in `tests/properties/test_squad.py`.
"""

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib

_TEXT = "A  film,\tas  good as\xa0any: 10 of 10!\nTruly ÉTRANGE ☃"


@pytest.fixture(name="vocab_file")
def fixture_vocab_file(tmp_path):
  path = tmp_path / "vocab.txt"
  tokens = docstrings.character_vocab([_TEXT, "abcdefghijklmnopqrstuvwxyz"], 40)
  path.write_text("".join(f"{token}\n" for token in tokens))
  return path


def test_ids_are_those_of_pre_training(vocab_file):
  ours = tokenizers.CachedTokenizer(vocab_file)
  vocabulary = vocab_lib.Vocabulary.load(str(vocab_file))
  theirs = tokenizers.CharacterTokenizer(vocabulary)
  text = _TEXT.replace("\xa0", " ")
  ids = ours.convert_tokens_to_ids(ours.tokenize(text))
  wanted = theirs.tokenize(tf.constant([text]))[0].numpy()
  np.testing.assert_array_equal(ids, wanted)
  # Word by word, as SQuAD's converter asks.
  assert ours.tokenize(text) == [
    token for word in text.split() for token in ours.tokenize(word)
  ]
