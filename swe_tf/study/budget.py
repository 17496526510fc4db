"""How short a pilot may be. Imports no TensorFlow."""

from swe_tf import errors

# A pilot looks at the validation loss so often, at equal distances.
VALIDATIONS = 20


def check_steps(steps: int, planned: int) -> None:
  """Raises unless a pilot of a planned run can have so many steps."""
  if not VALIDATIONS <= steps <= planned:
    raise errors.UsageError(
      f"a pilot of {steps} steps: it must have at least {VALIDATIONS} and at "
      f"most as many as the planned run ({planned})."
    )
