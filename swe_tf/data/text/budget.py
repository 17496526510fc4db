"""How many tokens of a sequence are predicted, without TensorFlow."""

import math

from swe_tf import errors


def max_predictions(
  seq_length: int, rate: float, asked: int | None = None
) -> int:
  """Returns the most predictions in a sequence.

  That is what a config asks for; 0 and None stand for `seq_length * rate`,
  rounded up.
  """
  # 0.15 * 20 is 3.0000000000000004 for some orders of multiplication.
  found = asked or math.ceil(round(seq_length * rate, 6))
  if found > seq_length:
    raise errors.UsageError(
      f"max_predictions_per_seq ({found}) must not be more than seq_length "
      f"({seq_length})."
    )
  return found
