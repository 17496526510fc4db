"""Random numbers and bad values; tests/properties has which tokens, exactly."""

import numpy as np
import pytest

from swe_tf import errors
from swe_tf.data.text import masking
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus


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
  vocabulary = vocab_lib.Vocabulary.from_tokens(corpus.tokens())
  tokenizer = tokenizers.WordPieceTokenizer(vocabulary)
  values = dict(masking="random", rate=0.15, max_predictions=3) | change
  with pytest.raises(errors.UsageError, match=message):
    masking.Masker(tokenizer, **values)
