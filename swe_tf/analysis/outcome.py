"""What a tuned study came to: each arm at its best rate, on fresh seeds.

Every arm is compared at the learning rate that was best on the tuning seed.
That seed then never counts: means, differences and verdicts are those of the
other seeds, paired with the baseline's run of the same seed. `comparisons` does
this for runs of which no seed chose the rate; the numbers and the words of both
are those of `statistics`. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import NamedTuple

from swe_tf import files
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import statistics

TUNING_SEED = 0
SHARE, DO_NOT_SHARE = "share", "do not share"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
  """What a comparison needs to know of a run.

  Attributes:
    final_loss: The validation loss after the last step; infinity if it
      diverged.
    phases: Pairs of a number of steps and the FLOPs per step, first to last.
    curve: Pairs of step and validation loss; empty if they were not kept.
  """

  arm: str
  learning_rate: float
  seed: int
  final_loss: float
  steps: int
  phases: tuple[tuple[int, float], ...]
  seconds: float
  curve: tuple[tuple[int, float], ...] = ()

  @property
  def flops(self) -> float:
    return sum(float(steps * per_step) for steps, per_step in self.phases)


def read_records(output_dir: files.PathLike) -> list[Record]:
  """Reads the finished runs of a tuned study's sweep, even while it runs."""
  found, _ = runs_lib.read([output_dir])
  records = []
  for run in found.itertuples():
    is_over = run.status in (runs_lib.FINISHED, runs_lib.DIVERGED)
    if not is_over or run.seconds is None or "arm" not in run.axes:
      continue  # Without seconds it has no result: it may be tried again.
    records.append(
      Record(
        **{key: run.axes[key] for key in ("arm", "learning_rate", "seed")},
        final_loss=run.validation_loss or math.inf,
        steps=run.steps,
        phases=run.phases,
        seconds=run.seconds,
        curve=tuple(run.curve),
      )
    )
  return records


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
  """The outcome of an arm at its best learning rate, on fresh seeds.

  Attributes:
    loss: The final loss; None if it has no fresh seed (it was dropped).
    difference: The final loss minus the baseline's, paired by seed.
    flops: Its total FLOPs, divided by the baseline's.
    control: The baseline, or one with as few FLOPs, that it is judged against.
    at_equal_flops: The final loss minus the control's, paired by seed.
    tuning_difference: The final loss minus the baseline's on the tuning seed:
      why an arm was dropped, never a verdict.
  """

  arm: str
  learning_rate: float
  loss: statistics.Interval | None
  difference: statistics.Interval | None
  flops: float
  control: str
  at_equal_flops: statistics.Interval | None
  tuning_difference: float | None


def at_best_rates(
  records: Sequence[Record], tuning_seed: int = TUNING_SEED
) -> dict[str, dict[int, Record]]:
  """Returns the runs of each arm at its best rate on the tuning seed, by seed.

  An arm without runs of that seed took its rate from another study, so it has
  only one.
  """
  found: dict[str, dict[int, Record]] = {}
  for arm in dict.fromkeys(record.arm for record in records):
    runs = [run for run in records if run.arm == arm]
    finite = [run for run in runs if math.isfinite(run.final_loss)]
    tuned = [run for run in finite if run.seed == tuning_seed] or finite
    if tuned:
      rate = min(tuned, key=lambda run: run.final_loss).learning_rate
      found[arm] = {run.seed: run for run in runs if run.learning_rate == rate}
  return found


def compare(
  records: Sequence[Record],
  *,
  baseline: str = "baseline",
  controls: Mapping[str, str] | None = None,
  tuning_seed: int = TUNING_SEED,
) -> dict[str, Outcome]:
  """Compares all arms with the baseline, each at its best rate.

  `controls` has baselines with as few FLOPs by arm.
  """
  best = at_best_rates(records, tuning_seed)
  losses = {
    arm: {s: run.final_loss for s, run in runs.items() if s != tuning_seed}
    for arm, runs in best.items()
  }
  # A run's FLOPs follow from its config, so any seed's will do.
  flops = {arm: next(iter(runs.values())).flops for arm, runs in best.items()}
  outcomes = {}
  for arm, runs in best.items():
    control = (controls or {}).get(arm, baseline)
    pair = runs.get(tuning_seed), best.get(baseline, {}).get(tuning_seed)
    outcomes[arm] = Outcome(
      arm=arm,
      learning_rate=next(iter(runs.values())).learning_rate,
      loss=statistics.mean(losses[arm].values()),
      difference=statistics.paired(losses[arm], losses.get(baseline, {})),
      flops=flops[arm] / flops.get(baseline, math.nan),
      control=control,
      at_equal_flops=statistics.paired(losses[arm], losses.get(control, {})),
      tuning_difference=pair[0].final_loss - pair[1].final_loss
      if pair[0] and pair[1]
      else None,
    )
  return outcomes


class Verdict(NamedTuple):
  """`share`, `do not share` or `cannot tell`; why; which arm it is about."""

  word: str
  reason: str
  arm: str


def judge(outcomes: Mapping[str, Outcome], arms: Sequence[str]) -> Verdict:
  """Judges whether the best of the arms that share is below its control."""
  found = [outcomes[arm] for arm in arms if arm in outcomes]
  pairs = [(o.at_equal_flops, o) for o in found if o.at_equal_flops is not None]
  if not pairs:
    why = "no run that shares has finished with a seed that chose no rate."
    return Verdict(statistics.CANNOT_TELL, why, "")
  # NaN, if both diverged, comes last.
  difference, best = min(
    pairs, key=lambda pair: (math.isnan(pair[0].mean), pair[0].mean)
  )
  word, arm, control = difference.word(), best.arm, "the baseline"
  if best.control != "baseline":
    control = f"{best.control}, a baseline with as few FLOPs"
  if not math.isfinite(difference.mean):
    costs = word == statistics.COSTS
    return Verdict(
      DO_NOT_SHARE if costs else statistics.CANNOT_TELL,
      f"{f'even {arm}' if costs else control} has diverged with a fresh seed, "
      "at the learning rate that was best for it.",
      arm,
    )
  if word == statistics.CANNOT_TELL:
    return Verdict(word, f"{arm} minus {control} is {difference}.", arm)
  pays = word == statistics.PAYS
  low, high = sorted((abs(difference.low), abs(difference.high)))
  return Verdict(
    SHARE if pays else DO_NOT_SHARE,
    f"{'' if pays else 'even '}{arm} ends {abs(difference.mean):.3f} "
    f"{'below' if pays else 'above'} {control}; 95% interval {low:.3f} to "
    f"{high:.3f}.",
    arm,
  )
