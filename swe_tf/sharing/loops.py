"""How many times the unit is applied while shared. Imports no TensorFlow.

While all units have the same weights, the stack need not apply them all: a step
that applies the unit only a few times is cheaper, and untying still yields the
whole stack. A schedule may grow to the whole stack before untying.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.sharing import untie_step as untie_step_lib


@dataclasses.dataclass(frozen=True)
class LoopSchedule:
  """How many units are applied, by the number of updates made.

  Attributes:
    num_units: The number of all units, applied once the last stage has ended.
    stages: Pairs of a step and the number of units applied before it.

  Example:

  >>> schedule = LoopSchedule(12, ((100, 3), (200, 6)))
  >>> [schedule.loops_at(step) for step in (0, 99, 100, 199, 200)]
  [3, 3, 6, 6, 12]
  >>> schedule.next_change(100)
  200
  """

  num_units: int
  stages: tuple[tuple[int, int], ...] = ()

  def loops_at(self, step: int) -> int:
    """Returns how many units are applied in the update after `step`."""
    for until, loops in self.stages:
      if step < until:
        return loops
    return self.num_units

  def next_change(self, step: int) -> int | None:
    """Returns the next step after `step` at which the number changes."""
    return next((until for until, _ in self.stages if until > step), None)


def resolve(
  stages: Sequence[Mapping[str, Any]],
  *,
  num_units: int,
  untie_step: int,
  train_steps: int,
) -> LoopSchedule:
  """Returns the schedule of `task.sharing.loops`.

  Args:
    stages: Mappings with `loops`, and `until_step` or `until_fraction`; a stage
      that has neither lasts until the untie step.
    num_units: How many units the stack has.
    untie_step: Tau.
    train_steps: The number of updates of the whole run.

  Raises:
    UsageError: If the loops or the steps do not increase from stage to stage,
      or go beyond the units or tau.
  """
  found: list[tuple[int, int]] = []
  for stage in stages:
    loops, until = stage["loops"], untie_step
    if loops < 1:
      raise errors.UsageError(
        f"task.sharing.loops has a stage without a number of loops ({stage}); "
        "write it as {loops: 3, until_fraction: 0.1}, with the spaces."
      )
    if stage.get("until_step") is not None or stage.get("until_fraction"):
      until = untie_step_lib.resolve_untie_step(
        train_steps,
        untie_step=stage.get("until_step"),
        untie_fraction=stage.get("until_fraction"),
      )
    least_until, least_loops = found[-1] if found else (0, 0)
    if not least_loops < loops <= num_units:
      raise errors.UsageError(
        f"task.sharing.loops has {loops} after {least_loops}: each number must "
        f"be larger than the one before, and at most the {num_units} units."
      )
    if not least_until < until <= untie_step:
      raise errors.UsageError(
        f"task.sharing.loops: {loops} loops end at step {until}, which must be "
        f"after step {least_until} and not after the untie step "
        f"({untie_step})."
      )
    found.append((until, loops))
  return LoopSchedule(num_units, tuple(found))
