"""What is masked, how often, and that words stay whole."""

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

  def test_words_are_never_partly_masked(self):
    for length, ids in self.packed.items():
      masked = _mask(ids, "whole_word")
      selected = _selected(ids, masked)
      # A piece that continues a word is selected with the piece before it. A
      # word that was cut off goes on after [CLS]: there it is a whole word.
      goes_on = _tokenizer().joins_left[ids[:, 1:]] & _IS_TEXT[ids[:, :-1]]
      self.assertGreater(goes_on.sum(), 10_000)
      self.assertAllEqual(
        selected[:, 1:][goes_on], selected[:, :-1][goes_on], f"{length}"
      )
      is_mask = masked["input_word_ids"] == _VOCABULARY.id_of("[MASK]")
      self.assertAllEqual(
        is_mask[:, 1:][goes_on], is_mask[:, :-1][goes_on], f"{length}"
      )

  def test_random_masking_does_mask_parts_of_words(self):
    ids = self.packed[128]
    selected = _selected(ids, _mask(ids, "random"))
    goes_on = _tokenizer().joins_left[ids[:, 1:]] & _IS_TEXT[ids[:, :-1]]
    self.assertNotAllEqual(selected[:, 1:][goes_on], selected[:, :-1][goes_on])

  @parameterized.parameters("random", "whole_word")
  def test_slots(self, masking_name):
    ids = self.packed[128][:500]
    masked = _mask(ids, masking_name, max_predictions=7)
    positions, labels = masked["masked_lm_positions"], masked["masked_lm_ids"]
    used = masked["masked_lm_weights"] > 0
    self.assertAllEqual(positions.shape, [500, 7])
    self.assertGreater(used.mean(), 0.95)
    self.assertAllEqual(np.sort(~used, axis=1), ~used)  # Used slots first.
    self.assertAllEqual(positions[~used], np.zeros_like(positions[~used]))
    self.assertAllEqual(labels[~used], np.zeros_like(labels[~used]))
    self.assertAllEqual(
      labels[used], np.take_along_axis(ids, positions, 1)[used]
    )
    steps = np.diff(positions, axis=1)
    self.assertTrue(np.all(steps[used[:, 1:]] > 0))

  def test_seeds(self):
    ids = self.packed[128]
    first, again, other = (_mask(ids, "whole_word", seed=s) for s in (1, 1, 2))
    for name in first:
      self.assertAllEqual(first[name], again[name])
    self.assertNotAllEqual(
      first["masked_lm_positions"], other["masked_lm_positions"]
    )

  @parameterized.parameters(16, 21)
  def test_numbers_belong_to_places(self, length):
    everything = masking.draw(5, 3, 0, 50, length)
    self.assertAllEqual(masking.draw(5, 3, 17, 20, length), everything[17:37])
    # Streams, places and rows have numbers of their own.
    numbers = np.concatenate(
      [np.ravel(everything), np.ravel(masking.draw(5, 4, 0, 50, length))]
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


if __name__ == "__main__":
  tf.test.main()
