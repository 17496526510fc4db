"""Unties when the units' gradients disagree, not at a fixed step.

While layers are tied, their gradients are averaged. Where the gradients of two
adjacent units no longer point the same way, the average serves neither.
"""

import json
import math
from typing import Any

import gin
import tensorflow as tf

from swe_tf.sharing import plan
from swe_tf.sharing import schedule
from swe_tf.sharing import untie_step as untie_step_lib


@gin.configurable
class UntieByCorrelation(schedule.UntieRule, tf.train.experimental.PythonState):
  """Unties when adjacent units' gradients have stopped agreeing.

  Every `interval` steps it looks at the cosine between the gradients of each
  pair of adjacent tied units. It unties all units once most of these cosines
  were below `rho`, `patience` times in a row. With `split` it cuts a group
  between two units instead, once their own cosine was below `rho`, `patience`
  times in a row.

  Attributes:
    decisions: All decisions so far, oldest first. They depend on earlier ones,
      so they are in the checkpoint.
  """

  def __init__(
    self,
    interval: int = 1000,
    rho: float = 0.5,
    patience: int = 3,
    split: bool = False,
  ):
    """Initializes the rule.

    Args:
      interval: The number of steps between two decisions.
      rho: The cosine below which two units disagree.
      patience: How many times in a row they must disagree.
      split: Whether to cut groups where units disagree, rather than untie all
        units at once.
    """
    super().__init__()
    untie_step_lib.check_correlation(interval, rho, patience)
    self.interval = interval
    self.rho = rho
    self.patience = patience
    self.split = split
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
    self, step: int, cosines: schedule.GradientCosines, groups: plan.Groups
  ) -> plan.Groups:
    """See base class. Decides once per step, however often it is called."""
    decided = self.decisions and self.decisions[-1]["step"] >= step
    if not step or step % self.interval or decided:
      return groups
    if any(map(math.isnan, cosines.adjacent)) or not cosines.adjacent:
      return groups  # Nothing was measured at this step.
    low = [cosine < self.rho for cosine in cosines.adjacent]
    counts = self._count(low)
    if self.split:
      after = self._cut(counts, groups)
    else:
      after = schedule.UNTIED if counts[0] >= self.patience else groups
    self.decisions.append(
      {
        "step": step,
        "cosines": [round(cosine, 6) for cosine in cosines.adjacent],
        "times_low": counts,
        "groups": list(after),
      }
    )
    return after

  def _count(self, low: list[bool]) -> list[int]:
    """Returns how many times in a row cosines were low.

    There is one count for each pair if `split`, else one for most pairs.
    """
    if not self.split:
      low = [sum(low) > len(low) / 2]
    earlier = (
      self.decisions[-1]["times_low"] if self.decisions else [0] * len(low)
    )
    return [(n + 1) * is_low for n, is_low in zip(earlier, low)]

  def _cut(self, counts: list[int], groups: plan.Groups) -> plan.Groups:
    """Cuts groups, which are runs of units, where a count is at `patience`."""
    after = [0]
    for unit, count in enumerate(counts, start=1):
      apart = groups[unit] != groups[unit - 1] or count >= self.patience
      after.append(unit if apart else after[-1])
    alone = after == list(range(len(groups)))
    return schedule.UNTIED if alone else tuple(after)
