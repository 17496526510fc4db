"""Which variables share their values, for the layers of Keras 3.

`plan.py` is the same for tf_keras. What splits a plan into groups, or ties only
some weights, is for Model Garden and has no counterpart here. Runs on any
backend and does not import TensorFlow.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

import keras

from swe_tf import errors
from swe_tf.sharing import keras_family
from swe_tf.sharing import untie_step

Tie = tuple[Any, ...]


def _role(variable) -> tuple[str, tuple[int, ...], str]:
  """Returns what must agree in a tie."""
  return variable.name, tuple(variable.shape), str(variable.dtype)


def _check_layer(layer, what: str) -> None:
  if not isinstance(layer, keras.layers.Layer):
    raise TypeError(
      f"{what} is a {type(layer).__module__}.{type(layer).__qualname__}, but "
      "this plan is for layers of Keras 3. A plan has layers of one Keras "
      "only: Keras 3, or tf_keras (imported before swe_tf is used)."
    )
  if not layer.trainable_variables:
    raise errors.UsageError(
      f"Layer {layer.name!r} has no trainable variables. Build the model "
      "before the plan (call it once on its inputs), and do not freeze the "
      "repeated layers."
    )


def _check_alike(stem, branch) -> None:
  """Raises unless both layers have the same variables in the same order."""
  ours = [_role(v) for v in stem.trainable_variables]
  theirs = [_role(v) for v in branch.trainable_variables]
  if ours != theirs:
    apart = next(
      (pair for pair in zip(ours, theirs) if pair[0] != pair[1]),
      (f"{len(ours)} variables", f"{len(theirs)} variables"),
    )
    raise errors.UsageError(
      f"Layers {stem.name!r} and {branch.name!r} are not alike, so they cannot "
      f"share weights: {apart[0]} in the first, {apart[1]} in the second. Pass "
      "only the repeated blocks, built with the same arguments."
    )


class SharingPlan:
  """The ties of a stack of Keras 3 layers.

  Attributes:
    ties: A tuple of ties. A tie is the tuple of the variables that play the
      same role in all units; the first is the stem.
    unit_size: The number `A` of consecutive layers in a unit.
    num_units: The number `B` of units.
  """

  def __init__(self, ties: Sequence[Tie], *, unit_size: int, num_units: int):
    self.ties = tuple(tuple(tie) for tie in ties)
    self.unit_size = unit_size
    self.num_units = num_units
    seen: set[int] = set()
    for variable in (v for tie in self.ties for v in tie):
      if id(variable) in seen:
        raise errors.UsageError(
          f"Variable {variable.path} is in the plan more than once. Layers "
          "that are the same object, or already share a variable, have nothing "
          "to untie: pass distinct layers."
        )
      seen.add(id(variable))

  @classmethod
  def from_layers(
    cls, layers: Sequence[keras.layers.Layer], unit_size: int = 1
  ) -> "SharingPlan":
    """Makes the plan in which layer i shares with layer j iff i = j (mod A).

    Args:
      layers: The repeated layers, first to last. They must be built, and have
        the same trainable variables.
      unit_size: The number `A` of consecutive layers in a unit. It must divide
        the number of layers.

    Returns:
      The plan.

    Example:

    >>> layers = [keras.layers.Dense(3) for _ in range(4)]
    >>> for layer in layers: layer.build([None, 3])
    >>> plan = SharingPlan.from_layers(layers, unit_size=2)
    >>> str(plan), len(plan.ties), [len(v.shape) for v in plan.ties[0]]
    ('2x2', 4, [2, 2])
    """
    layers = list(layers)
    if not layers:
      raise errors.UsageError(
        "There are no layers to share weights between: the list is empty."
      )
    for i, layer in enumerate(layers):
      _check_layer(layer, f"layers[{i}]")
    untie_step.check_unit_size(unit_size, len(layers))
    ties: list[Tie] = []
    for i, stem in enumerate(layers[:unit_size]):
      column = layers[i::unit_size]
      for branch in column[1:]:
        _check_alike(stem, branch)
      ties.extend(zip(*(layer.trainable_variables for layer in column)))
    return cls(ties, unit_size=unit_size, num_units=len(layers) // unit_size)

  @property
  def whole_ties(self) -> tuple[Tie, ...]:
    return self.ties

  @property
  def stems(self) -> Tie:
    return tuple(tie[0] for tie in self.ties)

  def tie_weights(self) -> None:
    """Copies every stem to its branches (Algorithm 1, line 2). Runs eagerly."""
    for stem, *branches in self.ties:
      for branch in branches:
        # A copy: JAX donates the buffers of variables, each of which must
        # therefore have its own.
        branch.assign(keras.ops.copy(stem.value))

  def __str__(self) -> str:
    return f"{self.unit_size}x{self.num_units}"

  def __repr__(self) -> str:
    return f"SharingPlan({self}, {len(self.ties)} ties)"


@dataclasses.dataclass(frozen=True)
class PlanConfig:
  """A plan in words, to be saved; `resolve` finds the variables again.

  Attributes:
    ties: The paths of the variables of each tie.
    unit_size: See `SharingPlan`.
    num_units: See `SharingPlan`.
    positions: Where the variables of each tie are among those that were
      trained; None if the optimizer was not built. A loaded model may have
      layers with other automatic names, but it has them in the same order.
  """

  ties: list[list[str]]
  unit_size: int
  num_units: int
  positions: list[list[int]] | None = None

  @classmethod
  def of(cls, plan: SharingPlan, trained: Sequence[Any]) -> "PlanConfig":
    """Returns the plan in words; `trained` is empty before it is known."""
    place = {id(v): i for i, v in enumerate(trained)}
    return cls(
      ties=[[v.path for v in tie] for tie in plan.ties],
      unit_size=plan.unit_size,
      num_units=plan.num_units,
      positions=[[place[id(v)] for v in tie] for tie in plan.ties]
      if place
      else None,
    )

  def resolve(self, trained: Sequence[Any]) -> SharingPlan:
    """Returns the plan for the variables of a model."""
    by_path = {v.path: v for v in trained}
    ties = []
    for i, paths in enumerate(self.ties):
      if self.positions is None:
        found = [by_path.get(path) for path in paths]
      else:
        found = [dict(enumerate(trained)).get(p) for p in self.positions[i]]
      for path, variable in zip(paths, found):
        if variable is None or variable.name != path.split("/")[-1]:
          raise errors.UsageError(
            f"The saved plan ties {path}, which is not among the "
            f"{len(trained)} variables that are trained here. Load the model "
            "that it was saved with, or compile with a new plan: "
            "SharedWeightsOptimizer(inner, SharingPlan.from_layers(layers))."
          )
      ties.append(tuple(found))
    return SharingPlan(ties, unit_size=self.unit_size, num_units=self.num_units)


def check_plan(plan: Any) -> None:
  """Raises unless `plan` is one for Keras 3."""
  if isinstance(plan, SharingPlan | PlanConfig):
    return
  tied = [v for tie in getattr(plan, "ties", ()) for v in tie]
  if tied and not keras_family.is_keras3(tied[0]):
    raise TypeError(
      f"inner_optimizer is of Keras 3, but plan ({plan!r}) is of tf_keras "
      "layers. Take the layers and the optimizer from the same Keras."
    )
  raise TypeError(
    "plan must be a SharingPlan, made by SharingPlan.from_layers(layers), got "
    f"{plan!r}."
  )
