"""Packing and masking of any text, against the obvious slow way."""

import functools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from swe_tf.data.text import masking
from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus
from tests.data.text import slow_packing

_VOCABULARY = vocab_lib.Vocabulary.from_tokens(corpus.tokens())
_LENGTHS = (8, 13, 24)
_SPECIAL = np.flatnonzero(~_VOCABULARY.is_text)

words = st.lists(
  st.sampled_from(["ba", "de", "fi"]), min_size=1, max_size=9
).map(lambda syllables: "ba" + "".join(syllables))
sentences = st.lists(words, min_size=1, max_size=6).map(" ".join)
documents = st.lists(
  st.lists(sentences, min_size=1, max_size=4), min_size=1, max_size=4
)


@functools.cache
def _tokenizer():
  return tokenizers.WordPieceTokenizer(_VOCABULARY)


@functools.cache
def _pack(length):
  pack = packing.Packer(_tokenizer(), length).pack
  return tf.function(pack, input_signature=[tf.TensorSpec([None], tf.string)])


@given(documents, st.sampled_from(_LENGTHS), st.integers(1, 3))
def test_packing(texts, length, blank_lines):
  between = "\n" * (blank_lines + 1)
  lines = between.join("\n".join(text) for text in texts).split("\n")
  packed = _pack(length)(lines).numpy()
  assert packed.tolist() == slow_packing.pack(_tokenizer(), texts, length)
  # Nothing is lost, nothing comes twice, and the order is that of the text.
  kept = packed[~np.isin(packed, _SPECIAL)]
  assert kept.tolist() == _tokenizer().tokenize(lines).values.numpy().tolist()


@functools.cache
def _mask(name, rate, most):
  masker = masking.Masker(_tokenizer(), name, rate, most)
  return tf.function(
    masker.mask,
    input_signature=[
      tf.TensorSpec([None, max(_LENGTHS)], tf.int32),
      tf.TensorSpec([None, 3, max(_LENGTHS)]),
    ],
  )


def _masked(texts, name, rate, most, seed):
  lines = "\n\n".join("\n".join(text) for text in texts).split("\n")
  length = max(_LENGTHS)
  ids = _pack(length)(lines).numpy()
  draws = masking.draw(seed, 0, 0, len(ids), length).numpy()
  found = _mask(name, rate, most)(ids, draws)
  return ids, draws, {key: value.numpy() for key, value in found.items()}


rates = st.sampled_from([0.15, 0.5])
mosts = st.sampled_from([1, 4, 24])
seeds = st.integers(0, 2**31)


@given(documents, rates, mosts, seeds)
def test_random_masking(texts, rate, most, seed):
  ids, draws, found = _masked(texts, "random", rate, most, seed)
  for row, (order, _, _), places, weights in zip(
    ids, draws, found["masked_lm_positions"], found["masked_lm_weights"]
  ):
    text = np.flatnonzero(_VOCABULARY.is_text[row])
    # In single precision, as the graph has it.
    budget = np.float32(rate) * np.float32(len(text)) + order[0]
    budget = min(max(int(budget), 1), most)
    chosen = sorted(sorted(text, key=lambda place: -order[place])[:budget])
    assert places[weights > 0].tolist() == chosen
    assert not places[weights == 0].any()
  _check_fates(ids, draws, found, lambda row: np.arange(len(row)))


@given(documents, rates, mosts, seeds)
def test_whole_word_masking(texts, rate, most, seed):
  ids, draws, found = _masked(texts, "whole_word", rate, most, seed)
  _check_fates(ids, draws, found, _words)
  for row, places, weights in zip(
    ids, found["masked_lm_positions"], found["masked_lm_weights"]
  ):
    text = np.flatnonzero(_VOCABULARY.is_text[row])
    used = places[weights > 0]
    assert len(used) <= min(most, int(rate * len(text)) + 1)
    assert np.all(np.diff(used) > 0) and set(used) <= set(text)
    word = _words(row)
    assert set(used) == {i for i in text if word[i] in word[used]}


def _words(row):
  """Returns for each place the number of its word."""
  numbers = [0]
  for left, right in zip(row, row[1:]):
    piece = _VOCABULARY.tokens[right].startswith("##")
    goes_on = piece and _VOCABULARY.is_text[left]
    numbers.append(numbers[-1] + (not goes_on))
  return np.array(numbers)


def _check_fates(ids, draws, found, words_of):
  """80% are hidden, 10% another token, 10% as they are; nothing else."""
  choices = np.flatnonzero(_VOCABULARY.is_text)
  expected = ids.copy()
  for i, row in enumerate(ids):
    used = found["masked_lm_weights"][i] > 0
    places = found["masked_lm_positions"][i]
    assert found["masked_lm_ids"][i].tolist() == (row[places] * used).tolist()
    for place in places[used]:
      fate = draws[i, 1, words_of(row)[place]]
      if fate < np.float32(0.8):
        expected[i, place] = _VOCABULARY.id_of("[MASK]")
      elif fate < np.float32(0.9):
        number = np.float32(draws[i, 2, place]) * np.float32(len(choices))
        expected[i, place] = choices[int(number)]
  assert found["input_word_ids"].tolist() == expected.tolist()
  is_there = ids != _VOCABULARY.id_of("[PAD]")
  assert found["input_mask"].tolist() == is_there.astype(int).tolist()


@given(
  seeds, st.integers(0, 3), st.integers(0, 40), st.integers(1, 8), st.data()
)
def test_the_numbers_of_an_example_are_its_own(
  seed, stream, first, count, data
):
  length = data.draw(st.sampled_from(_LENGTHS))
  together = masking.draw(seed, stream, 0, first + count, length).numpy()
  alone = masking.draw(seed, stream, first, count, length).numpy()
  assert np.array_equal(together[first:], alone)
  assert ((alone >= 0) & (alone < 1)).all()
