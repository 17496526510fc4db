"""How often what is masked; tests/properties has which tokens, exactly."""

import functools

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from swe_tf import errors
from swe_tf.data.text import budget
from swe_tf.data.text import masking
from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus

_VOCABULARY = vocab_lib.Vocabulary.from_tokens(corpus.tokens())
_IS_TEXT = _VOCABULARY.is_text
_SENTENCES = 10_000


@functools.cache
def _tokenizer():
  return tokenizers.WordPieceTokenizer(_VOCABULARY)


def _mask(ids, masking_name, rate=0.15, seed=1, max_predictions=None):
  length = ids.shape[1]
  masker = masking.Masker(
    _tokenizer(),
    masking_name,
    rate,
    max_predictions or budget.max_predictions(length, rate),
  )
  draws = masking.draw(seed, 0, 0, len(ids), length)
  return {k: v.numpy() for k, v in tf.function(masker.mask)(ids, draws).items()}


def _selected(ids, masked):
  """Returns `bool[batch, length]`: whether a token is to be predicted."""
  selected = np.zeros_like(ids, bool)
  rows, slots = np.nonzero(masked["masked_lm_weights"])
  positions = masked["masked_lm_positions"][rows, slots]
  assert not selected[rows, positions].any()
  selected[rows, positions] = True
  return selected


class MaskingTest(tf.test.TestCase, parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    lines = corpus.sentences(_SENTENCES)
    lines[7::50] = ["Zz " + line for line in lines[7::50]]  # Unknown words.
    cls.packed = {
      length: packing.Packer(_tokenizer(), length).pack(lines).numpy()
      for length in (20, 128)
    }

  # In very short sequences few words fit in the budget.
  @parameterized.parameters(
    ("random", 20), ("random", 128), ("whole_word", 128)
  )
  def test_rate_and_fates(self, masking_name, length):
    ids = self.packed[length]
    masked = _mask(ids, masking_name)
    selected = _selected(ids, masked)
    is_text = _IS_TEXT[ids]
    self.assertFalse(np.any(selected & ~is_text))
    self.assertNear(selected.sum() / is_text.sum(), 0.15, 0.005)

    shown = masked["input_word_ids"]
    self.assertAllEqual(shown[~selected], ids[~selected])
    to_mask = shown[selected] == _VOCABULARY.id_of("[MASK]")
    kept = shown[selected] == ids[selected]
    self.assertNear(to_mask.mean(), 0.8, 0.02)
    self.assertNear(kept.mean(), 0.1, 0.02)
    self.assertNear((~to_mask & ~kept).mean(), 0.1, 0.02)
    self.assertTrue(np.all(_IS_TEXT[shown[selected][~to_mask]]))

  @parameterized.parameters(16, 21)
  def test_numbers_belong_to_places(self, length):
    # Seeds, streams, places and rows have numbers of their own.
    numbers = np.concatenate(
      [
        np.ravel(masking.draw(seed, stream, 0, 50, length))
        for seed, stream in ((5, 3), (5, 4), (6, 3))
      ]
    )
    self.assertGreater(len(np.unique(numbers)), 0.99 * len(numbers))
    self.assertNear(numbers.mean(), 0.5, 0.02)

  @parameterized.parameters(
    (dict(masking="words"), "random, whole_word"),
    (dict(rate=1.5), "1.5"),
    (dict(max_predictions=0), "at least 1"),
  )
  def test_bad_values(self, change, message):
    values = dict(masking="random", rate=0.15, max_predictions=3) | change
    with self.assertRaisesRegex(errors.UsageError, message):
      masking.Masker(_tokenizer(), **values)
