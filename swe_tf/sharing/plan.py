"""Which variables share their values: the ties of a stack of layers.

A plan is made once from a list of layers, of tf_keras or of Keras 3, and only
names variables. It does not know how an update runs (`optimizer.py`,
`keras3.py`) or when sharing ends (`schedule.py`), and imports neither Keras.

The paper writes a plan as `AxB`: `A` consecutive layers form a unit, and the
stack is `B` such units (section 5.3.3). `1x24` shares all layers of
BERT-large, `24x1` shares none.
"""

from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.sharing import keras_family
from swe_tf.sharing import untie_step as untie_step_lib

Tie = tuple[Any, ...]
# For each unit, the first unit of its group, whose weights it has.
Groups = tuple[int, ...]


def variable_key(variable: Any) -> Any:
  """Returns a key that is the same on every replica of `variable`."""
  if hasattr(variable, "_distributed_container"):
    variable = variable._distributed_container()  # pylint: disable=protected-access
  return getattr(variable, "_unique_id", id(variable))


def require_keras(value, expected, what: str) -> None:
  """Raises unless `value` is an `expected`, which is a class of one Keras."""
  if not isinstance(value, expected):
    raise TypeError(
      f"{what} must be a {expected.__module__}.{expected.__qualname__}, got "
      f"{type(value).__module__}.{type(value).__qualname__}: {value!r}. Use "
      "one Keras only: tf_keras, on which Model Garden runs, or Keras 3."
    )


def _role(variable: Any) -> tuple[str, tuple[int, ...], str]:
  """Returns what must agree in a tie; only the end of a name is stable."""
  name = variable.name.split(":")[0].split("/")[-1]
  dtype = getattr(variable.dtype, "name", variable.dtype)
  return name, tuple(variable.shape), dtype


def _check_alike(stem: Any, branch: Any) -> None:
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
    seen = set()
    for tie in self.whole_ties:
      if len(tie) != num_units:
        raise errors.UsageError(
          f"Every tie of a plan with {num_units} units has {num_units} "
          f"variables, but the tie of {tie[0].name} has {len(tie)}."
        )
      for variable in tie:
        if variable_key(variable) in seen:
          raise errors.UsageError(
            f"Variable {getattr(variable, 'path', variable.name)} is in the "
            "plan more than once. Layers that are the same object, or already "
            "share a variable, have nothing to untie: pass distinct layers."
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
    cls, layers: Sequence[Any], unit_size: int = 1
  ) -> "SharingPlan":
    """Makes the plan in which layer i shares with layer j iff i = j (mod A).

    Args:
      layers: The repeated layers, first to last, of one Keras. They must be
        built, and have the same trainable variables.
      unit_size: The number `A` of consecutive layers in a unit. It must divide
        the number of layers.

    Returns:
      The plan.

    Raises:
      TypeError: If a layer is not a layer of the same Keras as the others.
      ValueError: If there are no layers, a layer is not built, `unit_size` does
        not divide their number, or two layers are not alike.

    Example:

    >>> import tf_keras
    >>> layers = [tf_keras.layers.Dense(3) for _ in range(4)]
    >>> for layer in layers: layer.build([None, 3])
    >>> plan = SharingPlan.from_layers(layers, unit_size=2)
    >>> str(plan), len(plan.ties), [v.shape.rank for v in plan.ties[0]]
    ('2x2', 4, [2, 2])
    """
    if not isinstance(layers, Iterable):
      raise TypeError(
        "layers must be the list of the repeated layers of a model, got "
        f"{type(layers).__name__}."
      )
    layers = list(layers)
    if not layers:
      raise errors.UsageError(
        "There are no layers to share weights between: the list is empty."
      )
    expected = keras_family.layer_class(layers)
    for i, layer in enumerate(layers):
      require_keras(layer, expected, f"layers[{i}]")
      if not layer.trainable_variables:
        raise errors.UsageError(
          f"Layer {layer.name!r} has no trainable variables. Build the model "
          "before the plan (call it once on its inputs), and do not freeze "
          "the repeated layers."
        )
    untie_step_lib.check_unit_size(unit_size, len(layers))
    num_units = len(layers) // unit_size
    ties: list[Tie] = []
    for i, stem in enumerate(layers[:unit_size]):
      column = layers[i::unit_size]
      for branch in column[1:]:
        _check_alike(stem, branch)
      ties.extend(zip(*(layer.trainable_variables for layer in column)))
    return cls(ties, unit_size=unit_size, num_units=num_units)

  def split(self, groups: Groups) -> "SharingPlan":
    """Returns the plan with smaller groups of the same units.

    `groups` has the first unit of its group for each unit. Every group must be
    part of one of this plan's: units cannot be tied again.

    >>> import tf_keras
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
      for branch in branches:
        branch.assign(keras_family.copy_of(stem))

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


def _path(variable: Any) -> str:
  return getattr(variable, "path", None) or variable.name.split(":")[0]


@dataclasses.dataclass(frozen=True)
class PlanConfig:
  """A plan in words, to be saved with a model; `resolve` finds the variables.

  `ties` are the paths of the variables of each tie, `positions` their places
  among those that were trained; None if the optimizer was not built. A loaded
  model may have layers with other automatic names, but in the same order.
  """

  ties: list[list[str]]
  unit_size: int
  num_units: int
  positions: list[list[int]] | None = None

  @classmethod
  def of(cls, plan: SharingPlan, trained: Sequence[Any]) -> "PlanConfig":
    """Returns the plan in words; `trained` is empty before it is known."""
    place = {variable_key(v): i for i, v in enumerate(trained)}
    paths = [[_path(v) for v in tie] for tie in plan.whole_ties]
    positions = [
      [place.get(variable_key(v), -1) for v in tie] for tie in plan.whole_ties
    ]
    known = positions if place else None
    return cls(paths, plan.unit_size, plan.num_units, known)

  def resolve(self, trained: Sequence[Any]) -> SharingPlan:
    """Returns the plan for the variables of a model."""
    known: dict[Any, Any] = {_path(v): v for v in trained}
    known |= enumerate(trained)
    all_places: Sequence[Sequence[Any]] = self.positions or self.ties
    ties = []
    for paths, places in zip(self.ties, all_places):
      ties.append(tuple(known.get(place) for place in places))
      for path, variable in zip(paths, ties[-1]):
        if variable is None or _role(variable)[0] != path.split("/")[-1]:
          raise errors.UsageError(
            f"The saved plan ties {path}, which is not among the "
            f"{len(trained)} variables that are trained here. Load the model "
            "that it was saved with, or compile with a new plan: "
            "SharedWeightsOptimizer(inner, SharingPlan.from_layers(layers))."
          )
    return SharingPlan(ties, unit_size=self.unit_size, num_units=self.num_units)
