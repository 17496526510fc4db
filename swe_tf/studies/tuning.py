"""Tunes all arms of a comparison alike: which runs are needed next.

Every arm of a comparison gets the same learning rates, with the first seed. As
long as the best of them is at an edge, the next rate beyond that edge is tried.
Then the best rate gets the other seeds. Hopeless arms are dropped on the way,
by rules that are fixed in advance:

- an arm of `probes` first runs at the middle rate only, and is dropped if it
  ends more than `drop_above` above the baseline at that rate;
- any arm is dropped if its best loss, once its rate is not at an edge, is more
  than `drop_above` above the best of the baseline, or of its control.

A control is a baseline with as few FLOPs as a cheaper arm; it is never dropped.

All functions are pure functions of the losses so far, so a study resumes by
calling them again. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

from swe_tf import errors


@dataclasses.dataclass(frozen=True)
class Point:
  arm: str
  learning_rate: float
  seed: int


# The loss of a run that diverged is infinity.
Losses = Mapping[Point, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuning:
  """How the arms of a comparison are tuned.

  Attributes:
    learning_rates: The first rates, ascending.
    seeds: The seeds; the first is used for tuning.
    most_rates: The maximum number of rates of an arm.
    drop_above: How far above the baseline's loss an arm is dropped.
    probes: Arms that get the other rates only if they do well at the middle
      one.
    kept: Arms that are never dropped, besides the baseline and the controls.
    controls: By arm, the baseline to compare it with instead.
  """

  arms: Mapping[str, Mapping[str, Any]]
  learning_rates: tuple[float, ...]
  seeds: tuple[int, ...]
  baseline: str
  most_rates: int = 6
  drop_above: float = math.inf
  probes: tuple[str, ...] = ()
  kept: tuple[str, ...] = ()
  controls: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    controls = (*self.controls, *self.controls.values())
    for name in (self.baseline, *self.probes, *self.kept, *controls):
      if name not in self.arms:
        raise errors.UsageError(
          f"tuning: {name!r} is not one of the arms ({', '.join(self.arms)})."
        )
    rates = self.learning_rates
    if len(rates) < 3 or list(rates) != sorted(set(rates)) or rates[0] <= 0:
      raise errors.UsageError(
        f"tuning.learning_rates ({list(rates)}) must be at least 3, ascending."
      )
    if not self.seeds or self.most_rates < len(rates):
      raise errors.UsageError(
        f"tuning: seeds ({list(self.seeds)}) must not be empty, most_rates "
        f"({self.most_rates}) at least {len(rates)}."
      )

  @property
  def middle_rate(self) -> float:
    return self.learning_rates[len(self.learning_rates) // 2]


def from_table(table: Any, path: str = "the study") -> Tuning:
  """Reads `tuning` from a study's file."""
  fields = [field.name for field in dataclasses.fields(Tuning)]
  if not isinstance(table, dict) or not isinstance(table.get("arms"), dict):
    raise errors.UsageError(
      f"{path}: tuning must be a table with arms, each a table of overrides."
    )
  for name in table:
    if name not in fields:
      raise errors.UsageError(
        f"{path}: tuning has no {name!r}, only {', '.join(fields)}."
      )
  values: dict[str, Any] = {
    name: tuple(value) if isinstance(value, list) else value
    for name, value in table.items()
  }
  values.setdefault("baseline", next(iter(table["arms"]), ""))
  try:
    values["learning_rates"] = tuple(map(float, values["learning_rates"]))
    values["seeds"] = tuple(map(int, values["seeds"]))
    return Tuning(**values)
  except errors.UsageError as error:
    raise errors.UsageError(f"{path}: {error}") from error
  except (KeyError, TypeError, ValueError) as error:
    raise errors.UsageError(
      f"{path}: tuning: {type(error).__name__} {error}; it needs arms, "
      "learning_rates and seeds."
    ) from error


def rates_of(tuning: Tuning, losses: Losses, arm: str) -> dict[float, float]:
  """Returns an arm's losses with the first seed by rate, ascending."""
  found = {
    point.learning_rate: loss
    for point, loss in losses.items()
    if (point.arm, point.seed) == (arm, tuning.seeds[0])
  }
  return dict(sorted(found.items()))


def best_rate(tuning: Tuning, losses: Losses, arm: str) -> float | None:
  """Returns the rate with the lowest loss; None if no loss is finite."""
  rates = rates_of(tuning, losses, arm)
  finite = {rate: loss for rate, loss in rates.items() if math.isfinite(loss)}
  return min(finite, key=finite.__getitem__) if finite else None


def is_at_edge(tuning: Tuning, losses: Losses, arm: str) -> bool:
  """Returns whether an arm's best rate has no neighbour on one side."""
  rates = list(rates_of(tuning, losses, arm))
  best = best_rate(tuning, losses, arm)
  return best is None or best in (rates[0], rates[-1])


def _is_tuned(tuning: Tuning, losses: Losses, arm: str) -> bool:
  """Returns whether an arm gets no more rates."""
  rates = rates_of(tuning, losses, arm).keys()
  return set(tuning.learning_rates) <= rates and (
    len(rates) >= tuning.most_rates or not is_at_edge(tuning, losses, arm)
  )


def dropped(tuning: Tuning, losses: Losses) -> dict[str, str]:
  """Returns why arms are dropped, by name."""
  reasons = {}
  middle = tuning.middle_rate
  for arm in tuning.arms:
    if arm in (tuning.baseline, *tuning.kept, *tuning.controls.values()):
      continue
    control = tuning.controls.get(arm, tuning.baseline)
    rates = rates_of(tuning, losses, arm)
    base = rates_of(tuning, losses, control)
    if arm in tuning.probes and {middle} <= rates.keys() & base.keys():
      over = rates[middle] - base[middle]
      if over > tuning.drop_above:
        reasons[arm] = f"{over:.3f} above the {control} at {middle:g}"
    if all(_is_tuned(tuning, losses, each) for each in (arm, control)):
      over = min(rates.values()) - min(base.values())
      if over > tuning.drop_above and arm not in reasons:
        reasons[arm] = f"best {over:.3f} above the {control}'s best"
  return reasons


def next_points(tuning: Tuning, losses: Losses) -> list[Point]:
  """Returns the runs that are needed next; none if the comparison is done."""
  gone = dropped(tuning, losses)
  first_seed, middle = tuning.seeds[0], tuning.middle_rate
  wanted: list[Point] = []
  for arm in sorted(tuning.arms, key=lambda arm: arm != tuning.baseline):
    if arm in gone:
      continue
    control = tuning.controls.get(arm, tuning.baseline)
    tried = list(rates_of(tuning, losses, arm))
    rates: Sequence[float] = tuning.learning_rates
    if arm in tuning.probes and not (
      middle in tried and middle in rates_of(tuning, losses, control)
    ):
      rates = [middle]
    missing = [rate for rate in rates if rate not in tried]
    best = best_rate(tuning, losses, arm)
    if missing or len(rates) == 1 or best is None:
      wanted += [Point(arm, rate, first_seed) for rate in missing]
    elif len(tried) < tuning.most_rates and best in (tried[0], tried[-1]):
      power = -1 if best == tried[0] else 1
      # Without the noise of binary fractions, which would be in its name.
      beyond = float(f"{best * 2.0**power:.6g}")
      wanted.append(Point(arm, beyond, first_seed))
    elif _is_tuned(tuning, losses, control):
      # Until its control is tuned, the arm may still be dropped.
      seeded = [Point(arm, best, seed) for seed in tuning.seeds[1:]]
      wanted += [point for point in seeded if point not in losses]
  # The baseline first, at all its rates: it decides which arms are dropped.
  return sorted(
    wanted, key=lambda p: (p.arm != tuning.baseline, p.learning_rate != middle)
  )
