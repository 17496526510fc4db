"""How short a pilot may be. Imports no TensorFlow."""

from swe_tf import errors

# How many times a pilot measures the validation loss, at equal intervals.
VALIDATIONS = 20


def check_steps(steps: int, planned: int) -> None:
  """Raises unless a pilot of a planned run can have this many steps."""
  if not VALIDATIONS <= steps <= planned:
    raise errors.UsageError(
      f"a pilot of {steps} steps: it must have at least {VALIDATIONS}, and "
      f"no more than the planned run ({planned})."
    )
