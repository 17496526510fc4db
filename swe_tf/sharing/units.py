"""Units: how many layers form one, and which weights share. No TensorFlow.

Arithmetic that `plan.py` and the checks of a config have in common.
"""

from swe_tf import errors

# Which weights of a block are tied: all, or only kernels.
ALL, KERNELS = "all", "kernels"


def check_unit_size(
  unit_size: int, num_layers: int, own_layers: int = 0
) -> None:
  """Raises unless `num_layers` layers divide into units of `unit_size`.

  Args:
    unit_size: The number of layers in a unit.
    num_layers: The number of all layers.
    own_layers: How many layers at either end are in no unit.
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
