"""Which variables share their values: the ties of a stack of layers.

A plan is made once from a list of layers and only names variables. It does not
know how an update runs (`optimizer.py`) or when sharing ends (`schedule.py`).

The paper writes a plan as `AxB`: `A` consecutive layers form a unit, and the
stack is `B` such units (section 5.3.3). `1x24` shares all layers of
BERT-large, `24x1` shares none.
"""

from collections.abc import Sequence

import tensorflow as tf
import tf_keras

from swe_tf import errors
from swe_tf.sharing import keras_family
from swe_tf.sharing import untie_step as untie_step_lib

Tie = tuple[tf.Variable, ...]
# For each unit, the first unit of its group, whose weights it has.
Groups = tuple[int, ...]


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


def _role(variable: tf.Variable) -> tuple[str, tuple[int, ...], str]:
  """Returns what must agree in a tie; only the end of a name is stable."""
  return (
    variable.name.split(":")[0].split("/")[-1],
    tuple(variable.shape.as_list()),
    variable.dtype.name,
  )


def _check_alike(
  stem: tf_keras.layers.Layer, branch: tf_keras.layers.Layer
) -> None:
  stem_roles = [_role(v) for v in stem.trainable_variables]
  branch_roles = [_role(v) for v in branch.trainable_variables]
  differs = (
    f"Layers {stem.name!r} and {branch.name!r} are not alike, so they cannot "
    "share weights: "
  )
  for i, (ours, theirs) in enumerate(zip(stem_roles, branch_roles)):
    if ours != theirs:
      raise errors.UsageError(
        f"{differs}trainable variable {i} is "
        f"{stem.trainable_variables[i].name} with shape {ours[1]} and dtype "
        f"{ours[2]} in the first, but {branch.trainable_variables[i].name} "
        f"with shape {theirs[1]} and dtype {theirs[2]} in the second. Pass "
        "only the repeated blocks, built with the same arguments."
      )
  if len(stem_roles) != len(branch_roles):
    both = (stem.trainable_variables, branch.trainable_variables)
    extra = max(both, key=len)[min(map(len, both))]
    raise errors.UsageError(
      f"{differs}they have {len(stem_roles)} and {len(branch_roles)} trainable "
      f"variables; the first that only one of them has is {extra.name}."
    )


class SharingPlan:
  """The ties of a stack of layers.

  Attributes:
    ties: A tuple of ties. A tie is the tuple of the variables that play the
      same role in the units of a group. The first is the stem, the variable of
      the first unit. All units are one group unless the plan was split.
    whole_ties: The ties over all units, whatever the groups.
    unit_size: The number `A` of consecutive layers in a unit.
    num_units: The number `B` of units.
    groups: For each unit, the first unit of its group.
  """

  def __init__(
    self,
    ties: Sequence[Tie],
    *,
    unit_size: int,
    num_units: int,
    groups: Groups | None = None,
  ):
    """Initializes a plan; most callers want `SharingPlan.from_layers`."""
    self.whole_ties = tuple(tuple(tie) for tie in ties)
    self.unit_size = unit_size
    self.num_units = num_units
    self.groups = (0,) * num_units if groups is None else tuple(groups)
    self._check()
    self.ties = tuple(
      tuple(v for v, group in zip(tie, self.groups) if group == first)
      for first in sorted(set(self.groups))
      for tie in self.whole_ties
    )

  def _check(self) -> None:
    num_units = self.num_units
    seen: set[str] = set()
    for tie in self.whole_ties:
      if len(tie) != num_units:
        raise errors.UsageError(
          f"Every tie of a plan with {num_units} units has {num_units} "
          f"variables, but the tie of {tie[0].name} has {len(tie)}."
        )
      for variable in tie:
        if variable_key(variable) in seen:
          raise errors.UsageError(
            f"Variable {variable.name} is in the plan more than once. Layers "
            "that are the same object, or already share a variable, have "
            "nothing to untie: pass distinct layers."
          )
        seen.add(variable_key(variable))
    if len(self.groups) != num_units or any(
      g > u or self.groups[g] != g for u, g in enumerate(self.groups)
    ):
      raise errors.UsageError(
        f"groups ({self.groups}) must have, for each of the {num_units} units, "
        "the number of the first unit of its group."
      )

  @classmethod
  def from_layers(
    cls, layers: Sequence[tf_keras.layers.Layer], unit_size: int = 1
  ) -> "SharingPlan":
    """Makes the plan in which layer i shares with layer j iff i = j (mod A).

    Args:
      layers: The repeated layers, first to last. They must be built, and have
        the same trainable variables.
      unit_size: The number `A` of consecutive layers in a unit. It must divide
        the number of layers.

    Returns:
      The plan.

    Raises:
      TypeError: If a layer is not a `tf_keras` layer. Layers of Keras 3 get
        the plan of `keras3_plan`.
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
    if any(map(keras_family.is_keras3, layers)):
      return keras_family.keras3("SharingPlan").from_layers(layers, unit_size)
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
    untie_step_lib.check_unit_size(unit_size, len(layers))
    num_units = len(layers) // unit_size
    ties: list[tuple[tf.Variable, ...]] = []
    for i, stem in enumerate(layers[:unit_size]):
      column = layers[i::unit_size]
      for branch in column[1:]:
        _check_alike(stem, branch)
      ties.extend(zip(*(layer.trainable_variables for layer in column)))
    return cls(ties, unit_size=unit_size, num_units=num_units)

  def split(self, groups: Groups) -> "SharingPlan":
    """Returns the plan with smaller groups of the same units.

    Args:
      groups: For each unit, the first unit of its group. Every group must be
        part of one of this plan's: units cannot be tied again.

    Example:

    >>> layers = [tf_keras.layers.Dense(3) for _ in range(4)]
    >>> for layer in layers: layer.build([None, 3])
    >>> whole = SharingPlan.from_layers(layers)
    >>> str(whole.split((0, 1, 0, 1))), str(whole.split((0, 0, 0, 3)))
    ('2x2', '1x4 in groups (0, 0, 0, 3)')
    """
    plan = SharingPlan(
      self.whole_ties,
      unit_size=self.unit_size,
      num_units=self.num_units,
      groups=groups,
    )
    if any(self.groups[g] != self.groups[u] for u, g in enumerate(plan.groups)):
      raise errors.UsageError(
        f"groups ({plan.groups}) must be parts of the groups so far "
        f"({self.groups}): units that were untied cannot be tied again."
      )
    return plan

  def first_units(self, count: int) -> "SharingPlan":
    """Returns the plan of the first `count` units alone, as one group."""
    ties = [tie[:count] for tie in self.whole_ties]
    return SharingPlan(ties, unit_size=self.unit_size, num_units=count)

  @property
  def stems(self) -> Tie:
    return tuple(tie[0] for tie in self.ties)

  def tie_weights(self) -> None:
    """Copies every stem to its branches (Algorithm 1, line 2). Runs eagerly."""
    for stem, *branches in self.ties:
      value = stem.read_value()
      for branch in branches:
        branch.assign(value)

  def __str__(self) -> str:
    period = len(set(self.groups))
    if self.groups == every_nth(period, self.num_units):
      return f"{self.unit_size * period}x{self.num_units // period}"
    return f"{self.unit_size}x{self.num_units} in groups {self.groups}"

  def __repr__(self) -> str:
    return f"SharingPlan({self}, {len(self.ties)} ties)"


def every_nth(n: int, num_units: int) -> Groups:
  """Returns the groups in which every `n`-th unit shares: units of n units."""
  return tuple(u % n for u in range(num_units))
