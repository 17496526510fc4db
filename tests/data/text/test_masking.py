"""How many whole words are masked, what is drawn, and the units of packing.

tests/properties has which tokens exactly, and packing the obvious slow way.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.data.prepare import manifest
from swe_tf.data.text import masking
from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus

_VOCABULARY = vocab_lib.Vocabulary.from_tokens(corpus.tokens())


def test_whole_words_come_to_the_rate_and_unknown_ones_are_left_alone():
  lines = corpus.sentences(10_000)
  lines[7::50] = ["Zz " + line for line in lines[7::50]]  # Unknown words.
  ids = packing.Packer(_tokenizer(), 128).pack(lines).numpy()
  most = manifest.max_predictions(128, 0.15)
  masker = masking.Masker(_tokenizer(), "whole_word", 0.15, most)
  masked = masker.mask(ids, masking.draw(1, 0, 0, len(ids), 128))
  is_text = _VOCABULARY.is_text
  used = masked["masked_lm_weights"].numpy() > 0
  assert is_text[masked["masked_lm_ids"].numpy()[used]].all()
  share = used.sum() / is_text[ids].sum()
  assert share == pytest.approx(0.15, abs=0.005)


@pytest.mark.parametrize("length", [16, 21])
def test_numbers_belong_to_places(length):
  # Seeds, streams, places and rows have numbers of their own.
  numbers = np.concatenate(
    [
      np.ravel(masking.draw(seed, stream, 0, 50, length))
      for seed, stream in ((5, 3), (5, 4), (6, 3))
    ]
  )
  assert len(np.unique(numbers)) > 0.99 * len(numbers)
  # Uniform: they decide the rate, and the 80%, 10% and 10%.
  for share in (0.1, 0.15, 0.5, 0.8, 0.9):
    assert np.mean(numbers < share) == pytest.approx(share, abs=0.02)


@functools.cache
def _tokenizer():
  return tokenizers.WordPieceTokenizer(_VOCABULARY)


def test_units_and_documents():
  lines = tf.constant(['baba dede. "Fifi!" gogo 3.5 lulu? mama'])
  units = _tokenizer().tokenize_units(lines)
  assert units[0].row_lengths().numpy().tolist() == [3, 4, 6, 1]
  text = "\n = One = \n\na\nb\n = = Part = = \n\nc\n\n = Two = \n\nd\n\n\ne"
  found, starts = packing.split_documents(tf.constant(text.split("\n")))
  assert b"|".join(found.numpy()) == b"= One =|a|b|= = Part = =|c|= Two =|d|e"
  assert np.flatnonzero(starts).tolist() == [0, 5, 7]
  for nothing in (["", " ", ""], []):
    lines = tf.constant(nothing, tf.string)
    assert packing.Packer(_tokenizer(), 16).pack(lines).shape == [0, 16]


def test_characters_are_packed_by_words():
  letters = [*vocab_lib.SPECIAL_TOKENS, *" abcdefgh."]
  vocabulary = vocab_lib.Vocabulary.from_tokens(letters)
  packer = packing.Packer(tokenizers.CharacterTokenizer(vocabulary), 12)
  packed = packer.pack(tf.constant(["Abc  de. fgh", "", "abcdefghabcdefgh b"]))
  assert ["".join(letters[i] for i in row) for row in packed.numpy()] == [
    "[CLS]abc de. [SEP][PAD][PAD]",
    "[CLS]fgh [SEP]abcde[SEP]",
    "[CLS]fghabcdefg[SEP]",
    "[CLS]h b [SEP][PAD][PAD][PAD][PAD][PAD][PAD]",
  ]
