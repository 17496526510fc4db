"""Units: how many layers form one, and what of them is shared. No TensorFlow.

The shared arithmetic of `plan.py`, for checks of a config as well.
"""

from swe_tf import errors

# What of a block is tied: all its weights, or its kernels.
ALL, KERNELS = "all", "kernels"


def check_unit_size(
  unit_size: int, num_layers: int, own_layers: int = 0
) -> None:
  """Raises unless `unit_size` layers make a unit of a stack of `num_layers`.

  Args:
    unit_size: The layers of a unit.
    num_layers: All layers.
    own_layers: How many at either end are in no unit.
  """
  if not isinstance(unit_size, int) or isinstance(unit_size, bool):
    raise errors.UsageError(f"unit_size must be an integer, got {unit_size!r}.")
  if not 0 <= 2 * own_layers < num_layers:
    raise errors.UsageError(
      f"own_layers ({own_layers}) are the layers at either end that are never "
      f"tied: of {num_layers} layers at least one must be left between them."
    )
  if own_layers:
    num_layers -= 2 * own_layers
  if unit_size < 1 or num_layers % unit_size:
    fits = [n for n in range(1, num_layers + 1) if num_layers % n == 0]
    raise errors.UsageError(
      f"unit_size ({unit_size}) must divide the number of layers "
      f"({num_layers}). Choose one of {', '.join(map(str, fits))}."
    )
