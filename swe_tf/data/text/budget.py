"""How many tokens of a sequence are predicted. Imports no TensorFlow."""

import math

from swe_tf import errors


def max_predictions(
  seq_length: int, rate: float, asked: int | None = None
) -> int:
  """Returns `asked`, or if unset `seq_length * rate`, rounded up."""
  # In floating point, 100 * 0.07 is 7.000000000000001, which is not 8.
  found = asked or math.ceil(round(seq_length * rate, 6))
  if found > seq_length:
    raise errors.UsageError(
      f"max_predictions_per_seq ({found}) must not be more than seq_length "
      f"({seq_length})."
    )
  return found
