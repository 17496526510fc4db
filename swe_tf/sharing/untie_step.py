"""The arithmetic of sharing configs: tau, units, loops. Imports no TensorFlow.

Tau counts updates: the first tau updates are shared, update tau + 1 is the
first unshared one. The paper's Algorithm 1 prints `t < tau` for the shared
phase, its text says "untied after 100 steps"; we follow the text.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import numbers
from typing import Any

from swe_tf import errors

# Section 5.3.2: about 10% of the steps is best.
PAPERS_FRACTION = 0.1


def resolve_untie_step(
  train_steps: int,
  *,
  untie_step: int | None = None,
  untie_fraction: float | None = PAPERS_FRACTION,
) -> int:
  """Returns tau from a step, or from a fraction of the training steps.

  It is between 0 (never shared) and `train_steps` (always shared). A step takes
  precedence over a fraction, which is rounded to a step.

  >>> resolve_untie_step(500_000)
  50000
  >>> resolve_untie_step(500_000, untie_step=7)
  7
  """
  if untie_step is not None:
    if not 0 <= untie_step <= train_steps:
      raise errors.UsageError(
        f"untie_step ({untie_step}) must be between 0 (never share) and "
        f"train_steps ({train_steps}; always share)."
      )
    return int(untie_step)
  if untie_fraction is None:
    raise errors.UsageError(
      "Neither untie_step nor untie_fraction is set. Set one of them; "
      f"untie_fraction={PAPERS_FRACTION} is what the paper recommends."
    )
  if not 0.0 <= untie_fraction <= 1.0:
    raise errors.UsageError(
      f"untie_fraction ({untie_fraction}) must be between 0.0 (never share) "
      "and 1.0 (always share)."
    )
  return round(untie_fraction * train_steps)


def check_untie_step(untie_step: Any) -> int | None:
  """Returns the tau of an optimizer; raises unless it is possible, or None."""
  if untie_step is None:
    return None
  is_whole = isinstance(untie_step, numbers.Integral)
  if not is_whole or isinstance(untie_step, bool) or untie_step < 0:
    raise errors.UsageError(
      f"untie_step ({untie_step!r}) must be a whole number of updates, 0 or "
      "more, or None."
    )
  return int(untie_step)


def check_unit_size(unit_size: int, num_layers: int) -> None:
  """Raises unless `num_layers` layers divide into units of `unit_size`."""
  if not isinstance(unit_size, int) or isinstance(unit_size, bool):
    raise errors.UsageError(f"unit_size must be an integer, got {unit_size!r}.")
  if unit_size < 1 or num_layers % unit_size:
    fits = [n for n in range(1, num_layers + 1) if num_layers % n == 0]
    raise errors.UsageError(
      f"unit_size ({unit_size}) must divide the number of layers "
      f"({num_layers}). Choose one of {', '.join(map(str, fits))}."
    )


@dataclasses.dataclass(frozen=True)
class LoopSchedule:
  """How many units are applied: a stage is a step, and the number before it.

  While all units have the same weights, the stack need not apply them all: a
  step that applies the unit only a few times is cheaper, and untying still
  yields the whole stack.

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


def resolve_loops(
  stages: Sequence[Mapping[str, Any]],
  *,
  num_units: int,
  untie_step: int,
  train_steps: int,
) -> LoopSchedule:
  """Returns the schedule of `task.sharing.loops`; raises if it does not grow.

  A stage has `loops`, and `until_step` or `until_fraction`; one that has
  neither lasts until the untie step.
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
      until = resolve_untie_step(
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
