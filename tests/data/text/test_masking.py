"""How often what is masked, and the units of packing.

tests/properties has which tokens exactly, and packing the obvious slow way.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf.data.text import budget
from swe_tf.data.text import masking
from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus

_VOCABULARY = vocab_lib.Vocabulary.from_tokens(corpus.tokens())


# In very short sequences few whole words fit in the budget.
@pytest.mark.parametrize(
  "kind, length", [("random", 20), ("random", 128), ("whole_word", 128)]
)
def test_rate_and_fates(kind, length):
  lines = corpus.sentences(10_000)
  lines[7::50] = ["Zz " + line for line in lines[7::50]]  # Unknown words.
  ids = packing.Packer(_tokenizer(), length).pack(lines).numpy()
  most = budget.max_predictions(length, 0.15)
  masker = masking.Masker(_tokenizer(), kind, 0.15, most)
  masked = masker.mask(ids, masking.draw(1, 0, 0, len(ids), length))
  rows, slots = np.nonzero(masked["masked_lm_weights"])
  positions = masked["masked_lm_positions"].numpy()[rows, slots]
  selected = np.zeros_like(ids, bool)
  selected[rows, positions] = True
  assert selected.sum() == len(rows), "a token was selected twice"
  is_text = _VOCABULARY.is_text
  assert is_text[ids[selected]].all()
  share = selected.sum() / is_text[ids].sum()
  assert share == pytest.approx(0.15, abs=0.005)
  shown = masked["input_word_ids"].numpy()
  np.testing.assert_array_equal(shown[~selected], ids[~selected])
  to_mask = shown[selected] == _VOCABULARY.id_of("[MASK]")
  kept = shown[selected] == ids[selected]
  fates = [to_mask.mean(), kept.mean(), (~to_mask & ~kept).mean()]
  assert fates == pytest.approx([0.8, 0.1, 0.1], abs=0.02)
  assert is_text[shown[selected][~to_mask]].all()


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


@pytest.mark.parametrize(
  "change, message",
  [
    (dict(masking="words"), "random, whole_word"),
    (dict(rate=1.5), "1.5"),
    (dict(max_predictions=0), "at least 1"),
  ],
)
def test_bad_values(change, message):
  values = dict(masking="random", rate=0.15, max_predictions=3) | change
  with pytest.raises(errors.UsageError, match=message):
    masking.Masker(_tokenizer(), **values)


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
