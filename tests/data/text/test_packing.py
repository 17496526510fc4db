"""Packing of long sequences, WikiText and characters.

tests/properties has any text against the obvious slow way.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus
from tests.data.text import slow_packing


@functools.cache
def _tokenizer():
  vocabulary = vocab_lib.Vocabulary.from_tokens(corpus.tokens())
  return tokenizers.WordPieceTokenizer(vocabulary)


@pytest.mark.parametrize("seq_length", [12, 33, 64, 512])
def test_equals_the_slow_way(seq_length):
  text = corpus.text(400)
  documents = [d.split("\n") for d in text.strip().split("\n\n")]
  pack = tf.function(packing.Packer(_tokenizer(), seq_length).pack)
  expected = slow_packing.pack(_tokenizer(), documents, seq_length)
  assert pack(tf.constant(text.split("\n"))).numpy().tolist() == expected


def test_units_and_documents():
  lines = tf.constant(['baba dede. "Fifi!" gogo 3.5 lulu? mama'])
  units = _tokenizer().tokenize_units(lines)
  assert units[0].row_lengths().numpy().tolist() == [3, 4, 6, 1]
  text = "\n = One = \n\na\nb\n = = Part = = \n\nc\n\n = Two = \n\nd\n\n\ne"
  found, starts = packing.split_documents(tf.constant(text.split("\n")))
  assert b"|".join(found.numpy()) == b"= One =|a|b|= = Part = =|c|= Two =|d|e"
  assert np.flatnonzero(starts).tolist() == [0, 5, 7]
  for nothing in (["", " ", ""], []):
    packed = packing.Packer(_tokenizer(), 16).pack(
      tf.constant(nothing, tf.string)
    )
    assert packed.shape == [0, 16]


def test_characters_are_packed_by_words():
  letters = [*vocab_lib.SPECIAL_TOKENS, *" abcdefgh."]
  tokenizer = tokenizers.CharacterTokenizer(
    vocab_lib.Vocabulary.from_tokens(letters)
  )
  packed = packing.Packer(tokenizer, 12).pack(
    tf.constant(["Abc  de. fgh", "", "abcdefghabcdefgh b"])
  )
  assert ["".join(letters[i] for i in row) for row in packed.numpy()] == [
    "[CLS]abc de. [SEP][PAD][PAD]",
    "[CLS]fgh [SEP]abcde[SEP]",
    "[CLS]fghabcdefg[SEP]",
    "[CLS]h b [SEP][PAD][PAD][PAD][PAD][PAD][PAD]",
  ]
