"""How many steps a method needs to get to the baseline's final loss.

Read off the validation curve of each run, beside the baseline's run of the
same seed. The learning rate of both reaches 0 at the same last step, so that
this is a reading in the middle of a schedule: a run that was scheduled to end
there would do better. Imports no TensorFlow.
"""

import dataclasses
import math
from typing import Optional

from swe_tf.report import curves
from swe_tf.report import groups as groups_lib
from swe_tf.report import runs as runs_lib


@dataclasses.dataclass(frozen=True)
class Speed:
  """The steps that a method needs, relative to the baseline's.

  Attributes:
    ratio: Mean and deviation over seeds; None unless all of them got there:
      the mean of those that did would flatter.
    reached: The number of seeds that got there.
    pairs: The number of seeds that the baseline has too.
    points: The fewest validations that a run has.
  """
  ratio: Optional[groups_lib.Statistic]
  reached: int
  pairs: int
  points: int


def steps_to_reach(curve: curves.Curve, target: float) -> Optional[float]:
  """Returns the first step at which a curve is down at `target`.

  Between two points the curve is a straight line; before its first point it
  is unknown, so that the answer is never earlier than that.

  >>> steps_to_reach([(10, 3.0), (20, 1.0)], 1.5)
  17.5

  Args:
    curve: The loss by step.
    target: The loss to get to.

  Returns:
    The step; None if the curve never gets there.
  """
  before = None
  for step, value in curve:
    if value <= target:
      if before is None or not math.isfinite(before[1]):
        return float(step)
      start, high = before
      return start + (high - target) / (high - value) * (step - start)
    before = step, value
  return None


def measure(group: groups_lib.Group,
            baseline: groups_lib.Group) -> Optional[Speed]:
  """Compares a group with the baseline; None if they have no common seed."""
  targets = baseline.values(runs_lib.LOSS)
  pairs = [run for run in group.runs if run.facts.seed in targets]
  if not pairs:
    return None
  ratios = []
  for run in pairs:
    step = steps_to_reach(
        run.validation["validation_loss"], targets[run.facts.seed])
    if step is not None:
      ratios.append(step / baseline.facts.train_steps)
  complete = len(ratios) == len(pairs)
  return Speed(
      groups_lib.summarize(ratios) if complete else None, len(ratios),
      len(pairs), min(len(run.validation["validation_loss"]) for run in pairs))
