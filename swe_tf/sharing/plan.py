"""Which variables share their values: the ties of a stack of layers.

A plan is made once from a list of layers and only names variables. It does not
know how an update runs (`optimizer.py`) or when sharing ends (`schedule.py`).

The paper writes a plan as `AxB`: `A` consecutive layers form a unit, and the
stack is `B` such units (section 5.3.3). `1x24` shares all layers of
BERT-large, `24x1` shares none.
"""

import math
from typing import Sequence, Tuple

import tensorflow as tf
import tf_keras

from swe_tf import errors

Tie = Tuple[tf.Variable, ...]


def variable_key(variable: tf.Variable) -> str:
  """Returns a key that is the same on every replica of `variable`."""
  if hasattr(variable, "_distributed_container"):
    variable = variable._distributed_container()  # pylint: disable=protected-access
  return variable._unique_id  # pylint: disable=protected-access


def require_tf_keras(value, expected, what: str) -> None:
  """Raises unless `value` is an `expected`; a Keras 3 object gets a hint."""
  if isinstance(value, expected):
    return
  came = f"{type(value).__module__}.{type(value).__qualname__}"
  modules = {cls.__module__.split(".")[0] for cls in type(value).__mro__}
  if "keras" in modules:
    raise TypeError(
        f"{what} is a Keras 3 object ({came}), but Model Garden runs on "
        "tf_keras. Build it with `import tf_keras`, or set "
        "TF_USE_LEGACY_KERAS=1 before the first `import tensorflow`."
    )
  raise TypeError(
      f"{what} must be a {expected.__module__}.{expected.__qualname__}, "
      f"got {came}: {value!r}."
  )


def _role(variable: tf.Variable) -> Tuple[str, Tuple[int, ...], str]:
  """What must agree within a tie. Only the last part of a name is stable."""
  return (
      variable.name.split(":")[0].split("/")[-1],
      tuple(variable.shape.as_list()),
      variable.dtype.name,
  )


def _check_alike(
    stem: tf_keras.layers.Layer, branch: tf_keras.layers.Layer
) -> None:
  """Raises unless both layers have the same variables in the same order."""
  stem_roles = [_role(v) for v in stem.trainable_variables]
  branch_roles = [_role(v) for v in branch.trainable_variables]
  for i, (ours, theirs) in enumerate(zip(stem_roles, branch_roles)):
    if ours != theirs:
      raise errors.UsageError(
          f"Layers {stem.name!r} and {branch.name!r} are not alike, so they "
          f"cannot share weights: trainable variable {i} is "
          f"{stem.trainable_variables[i].name} with shape {ours[1]} and dtype "
          f"{ours[2]} in the first, but {branch.trainable_variables[i].name} "
          f"with shape {theirs[1]} and dtype {theirs[2]} in the second. Pass "
          "only the repeated blocks, built with the same arguments."
      )
  if len(stem_roles) != len(branch_roles):
    both = (stem.trainable_variables, branch.trainable_variables)
    extra = max(both, key=len)[min(map(len, both))]
    raise errors.UsageError(
        f"Layers {stem.name!r} and {branch.name!r} are not alike, so they "
        f"cannot share weights: they have {len(stem_roles)} and "
        f"{len(branch_roles)} trainable variables; the first that only one of "
        f"them has is {extra.name}."
    )


class SharingPlan:
  """The ties of a stack of layers.

  Attributes:
    ties: A tuple of ties. A tie is the tuple of the `num_units` variables that
      play the same role in the units, the stem (the one of unit 0) first.
    unit_size: The number `A` of consecutive layers in a unit.
    num_units: The number `B` of units.
  """

  def __init__(self, ties: Sequence[Tie], *, unit_size: int, num_units: int):
    """Initializes a plan; most callers want `SharingPlan.from_layers`."""
    self.ties = tuple(tuple(tie) for tie in ties)
    self.unit_size = unit_size
    self.num_units = num_units
    for tie in self.ties:
      if len(tie) != num_units:
        raise errors.UsageError(
            f"Every tie of a plan with {num_units} units has {num_units} "
            f"variables, but the tie of {tie[0].name} has {len(tie)}."
        )
    keys = [variable_key(v) for tie in self.ties for v in tie]
    if len(set(keys)) != len(keys):
      repeated = next(
          v.name
          for tie in self.ties
          for v in tie
          if keys.count(variable_key(v)) > 1
      )
      raise errors.UsageError(
          f"Variable {repeated} stands in the plan more than once. Layers that "
          "are one object, or that already share a variable, have nothing to "
          "untie: pass distinct layers."
      )

  @classmethod
  def from_layers(
      cls, layers: Sequence[tf_keras.layers.Layer], unit_size: int = 1
  ) -> "SharingPlan":
    """Makes the plan in which layer i shares with layer j iff i = j (mod A).

    Args:
      layers: The repeated layers, first to last, built, all with the same
        trainable variables.
      unit_size: The number `A` of consecutive layers in a unit. It must divide
        the number of layers.

    Returns:
      The plan.

    Raises:
      TypeError: If a layer is not a `tf_keras` layer.
      ValueError: If there are no layers, a layer is not built, `unit_size` does
        not divide their number, or two layers are not alike.

    Example:

    >>> layers = [tf_keras.layers.Dense(3) for _ in range(4)]
    >>> for layer in layers: layer.build([None, 3])
    >>> plan = SharingPlan.from_layers(layers, unit_size=2)
    >>> str(plan), len(plan.ties), [v.shape.rank for v in plan.ties[0]]
    ('2x2', 4, [2, 2])
    """
    layers = list(layers)
    if not layers:
      raise errors.UsageError(
          "There are no layers to share weights between: the list is empty."
      )
    for i, layer in enumerate(layers):
      require_tf_keras(layer, tf_keras.layers.Layer, f"layers[{i}]")
      if not layer.trainable_variables:
        raise errors.UsageError(
            f"Layer {layer.name!r} has no trainable variables. Build the model "
            "before the plan (call it once on its inputs), and do not freeze "
            "the repeated layers."
        )
    check_unit_size(unit_size, len(layers))
    num_units = len(layers) // unit_size
    ties = []
    for i, stem in enumerate(layers[:unit_size]):
      column = layers[i::unit_size]
      for branch in column[1:]:
        _check_alike(stem, branch)
      ties.extend(zip(*(layer.trainable_variables for layer in column)))
    return cls(ties, unit_size=unit_size, num_units=num_units)

  @property
  def num_layers(self) -> int:
    return self.unit_size * self.num_units

  @property
  def stems(self) -> Tie:
    return tuple(tie[0] for tie in self.ties)

  @property
  def parameters_per_unit(self) -> int:
    """The number of weights of one unit: what an update touches when shared."""
    return sum(math.prod(stem.shape.as_list()) for stem in self.stems)

  def tie_weights(self) -> None:
    """Copies every stem to its branches (Algorithm 1, line 2). Runs eagerly."""
    for stem, *branches in self.ties:
      value = stem.read_value()
      for branch in branches:
        branch.assign(value)

  def __str__(self) -> str:
    return f"{self.unit_size}x{self.num_units}"

  def __repr__(self) -> str:
    return f"SharingPlan({self}, {len(self.ties)} ties)"


def check_unit_size(unit_size: int, num_layers: int) -> None:
  """Raises unless `unit_size` layers make a unit of a stack of `num_layers`."""
  if not isinstance(unit_size, int) or isinstance(unit_size, bool):
    raise errors.UsageError(f"unit_size must be an integer, got {unit_size!r}.")
  if unit_size < 1 or num_layers % unit_size:
    fits = [n for n in range(1, num_layers + 1) if num_layers % n == 0]
    raise errors.UsageError(
        f"unit_size ({unit_size}) must divide the number of layers "
        f"({num_layers}). Choose one of {', '.join(map(str, fits))}."
    )
