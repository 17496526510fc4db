"""Rules that say when sharing ends: at tau, or when the layers disagree."""

import abc
from collections.abc import Sequence
import dataclasses
import json
import math
from typing import Any

import gin
import tensorflow as tf

from swe_tf import errors
from swe_tf.sharing import plan

# A rule returns this instead of groups to end the shared phase.
UNTIED: plan.Groups = ()


@dataclasses.dataclass(frozen=True)
class GradientCosines:
  """Cosines between the units' whole gradients; NaN before a measurement."""

  mean: float  # Over all pairs of units.
  adjacent: tuple[float, ...] = ()  # Of each unit with the next.


class UntieRule(abc.ABC):
  """Decides, between two compiled loops, whether to untie now.

  Subclass it for a rule that a config cannot express, and bind it in gin (see
  `gin/custom_rule.gin`). All methods run eagerly on the host, outside the
  compiled step. With several workers, every worker runs the rule: decide from
  values that are the same on all of them.
  """

  @abc.abstractmethod
  def next_decision(self, step: int) -> int | None:
    """Returns the first step after `step` at which to decide, or None."""

  def should_untie(self, step: int, gradient_cosine: float) -> bool:
    """Decides whether to untie after update `step`.

    Args:
      step: The number of updates made: a step that `next_decision` returned, or
        a later one if training was resumed there.
      gradient_cosine: The mean pairwise cosine between the tied layers'
        gradients, as last measured; NaN before the first measurement.

    Returns:
      Whether the next update is the first unshared one.
    """
    raise NotImplementedError("A rule needs either should_untie or regroup.")

  def regroup(
    self, step: int, cosines: GradientCosines, groups: plan.Groups
  ) -> plan.Groups:
    """Decides which units share after update `step`; all or none by default.

    Override it, in place of `should_untie`, for a rule that unties some units
    before others.

    Args:
      step: As for `should_untie`.
      cosines: The last measurement; see `cosine_interval`.
      groups: For each unit, the first unit of its group.

    Returns:
      `groups`, parts of them, or `UNTIED`.
    """
    return UNTIED if self.should_untie(step, cosines.mean) else groups

  @property
  def cosine_interval(self) -> int | None:
    """The number of steps between two measurements; None for the default."""
    return None

  @property
  def reads_cosines(self) -> bool:
    """Whether a decision may depend on the cosines."""
    return True

  @property
  def state(self) -> dict[str, Any]:
    """State to checkpoint, so that a resumed rule makes the same decisions."""
    return {}


@gin.configurable
class UntieAtStep(UntieRule):
  """The paper's rule: untie after tau updates."""

  def __init__(self, untie_step: int):
    self.untie_step = untie_step

  @property
  def reads_cosines(self) -> bool:
    return False

  def next_decision(self, step: int) -> int | None:
    return self.untie_step if step < self.untie_step else None

  def should_untie(self, step: int, gradient_cosine: float) -> bool:
    del gradient_cosine
    return step >= self.untie_step


@gin.configurable
class UntieInStages(UntieAtStep):
  """Makes the units larger in stages, then unties at tau.

  A stage is a step, and how many of the plan's units form a unit after it. For
  example 1x24 at first, 4x6 from step 1000, untied from step 2000:
  `UntieInStages(untie_step=2000, stages=[(1000, 4)])` for a plan of 1x24.
  """

  def __init__(self, untie_step: int, stages: Sequence[tuple[int, int]]):
    super().__init__(untie_step)
    self.stages = sorted((step, units) for step, units in stages)
    factor = 1
    for step, units in self.stages:
      if not 0 < step < untie_step:
        raise errors.UsageError(
          f"A stage begins at step {step}, which is not between 0 and the "
          f"untie step ({untie_step})."
        )
      if units % factor or units == factor:
        raise errors.UsageError(
          f"The stage at step {step} has units of {units}, after units of "
          f"{factor}: each must be a multiple of the one before."
        )
      factor = units

  def next_decision(self, step: int) -> int | None:
    coming = [begin for begin, _ in self.stages if begin > step]
    return min(coming) if coming else super().next_decision(step)

  def regroup(
    self, step: int, cosines: GradientCosines, groups: plan.Groups
  ) -> plan.Groups:
    if self.should_untie(step, cosines.mean):
      return UNTIED
    begun = [units for begin, units in self.stages if begin <= step]
    return plan.every_nth(begun[-1], len(groups)) if begun else groups


@gin.configurable
class UntieByCorrelation(UntieRule, tf.train.experimental.PythonState):
  """Unties when adjacent units' gradients have stopped agreeing.

  While layers are tied, their gradients are averaged; where those of two
  adjacent units no longer point the same way, the average serves neither. Every
  `interval` steps it looks at the cosine between the gradients of each pair of
  adjacent units. It unties all units once most of these cosines were below
  `rho`, `patience` times in a row.

  Attributes:
    decisions: All decisions so far, oldest first. They depend on earlier ones,
      so they are in the checkpoint.
  """

  def __init__(self, interval: int = 1000, rho: float = 0.5, patience: int = 3):
    super().__init__()
    for name, value in (("interval", interval), ("patience", patience)):
      if value < 1:
        raise errors.UsageError(f"{name} ({value}) must be at least 1.")
    if not -1.0 <= rho <= 1.0:
      raise errors.UsageError(
        f"rho ({rho}) must be a cosine, between -1.0 and 1.0."
      )
    self.interval = interval
    self.rho = rho
    self.patience = patience
    self.decisions: list[dict[str, Any]] = []

  @property
  def state(self) -> dict[str, Any]:
    return {"untie_rule": self}

  def serialize(self) -> str:
    return json.dumps(self.decisions)

  def deserialize(self, string_value: str) -> None:
    self.decisions = json.loads(string_value)

  @property
  def cosine_interval(self) -> int:
    return self.interval

  def next_decision(self, step: int) -> int | None:
    return (step // self.interval + 1) * self.interval

  def regroup(
    self, step: int, cosines: GradientCosines, groups: plan.Groups
  ) -> plan.Groups:
    """See base class. Decides once per step, however often it is called."""
    decided = self.decisions and self.decisions[-1]["step"] >= step
    if not step or step % self.interval or decided:
      return groups
    if any(map(math.isnan, cosines.adjacent)) or not cosines.adjacent:
      return groups  # Nothing was measured at this step.
    low = [cosine < self.rho for cosine in cosines.adjacent]
    (earlier,) = self.decisions[-1]["times_low"] if self.decisions else (0,)
    times_low = (earlier + 1) * (sum(low) > len(low) / 2)
    after = UNTIED if times_low >= self.patience else groups
    self.decisions.append(
      {
        "step": step,
        "cosines": [round(cosine, 6) for cosine in cosines.adjacent],
        "times_low": [times_low],
        "groups": list(after),
      }
    )
    return after
