"""The outcome of a comparison: losses, savings, intervals, a verdict.

Arms are compared at their best learning rates, seed by seed: each run with the
baseline's run of the same seed. An arm's savings are read off its validation
curve: the steps, and the FLOPs of these steps, that it takes to reach the final
loss of that baseline run. Intervals are Student's, over seeds. Imports no
TensorFlow, except to read runs.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import scalars
from swe_tf.analysis import statistics
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import tuning as tuning_lib

SHARE, DO_NOT_SHARE = "share", "do not share"
CANNOT_TELL = "cannot tell"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
  """What a comparison needs to know of a run.

  Attributes:
    arm: Its arm.
    learning_rate: The peak.
    seed: The seed.
    final_loss: The validation loss after the last step; infinity if it failed.
    steps: The number of its steps.
    phases: Pairs of a number of steps and the FLOPs per step, first to last.
    seconds: How long it took.
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
  def point(self) -> tuning_lib.Point:
    return tuning_lib.Point(self.arm, self.learning_rate, self.seed)

  @property
  def flops(self) -> float:
    return self.flops_until(self.steps)

  def flops_until(self, step: float) -> float:
    """Returns the FLOPs of the first `step` steps.

    >>> phases = ((10, 1.0), (10, 4.0))
    >>> run = Record(arm="a", learning_rate=1.0, seed=0, final_loss=1.0,
    ...              steps=20, phases=phases, seconds=1.0)
    >>> run.flops_until(12.5)
    20.0
    """
    flops, left = 0.0, step
    for steps, flops_per_step in self.phases:
      flops += min(steps, left) * flops_per_step
      left = max(0.0, left - steps)
    return flops

  def steps_to(self, loss: float) -> float | None:
    """Returns the steps to reach a loss; None if it was never reached."""
    return scalars.steps_to_reach(list(self.curve), loss)

  def as_table(self) -> dict[str, Any]:
    """Returns the record for JSON; a loss that is not finite becomes None."""
    table = dataclasses.asdict(self)
    if not math.isfinite(self.final_loss):
      table["final_loss"] = None
    return table


def from_table(table: Mapping[str, Any]) -> Record:
  """Returns the record that `Record.as_table` wrote."""
  loss = table["final_loss"]
  return Record(
    **{
      **table,
      "final_loss": math.inf if loss is None else loss,
      "phases": tuple((int(n), float(f)) for n, f in table["phases"]),
      "curve": tuple((int(s), float(v)) for s, v in table["curve"]),
    }
  )


def read_records(output_dir: files.PathLike) -> list[Record]:
  """Reads the finished runs of a tuned study's sweep, even while it runs.

  Raises:
    UsageError: If there is no such sweep.
  """
  from swe_tf.configs import cost
  from swe_tf.studies import experiments

  root = files.as_path(output_dir)
  if not (root / "study.json").exists():
    raise errors.UsageError(
      f"{root} has no study.json: no sweep was run there."
    )
  study = files.read_json(root / "study.json")
  records = []
  for name, point in study["runs"].items():
    run = directory_lib.RunDirectory(root / name)
    result = run.read_result()
    if result is None or not point.get("arm"):
      continue
    config = experiments.read_config(study["experiment"], run.config_file)
    metric = study["metrics"][0]
    loss = result["metrics"][metric]
    curves = scalars.read_scalars(str(run.path / "validation"))
    records.append(
      Record(
        arm=point["arm"],
        learning_rate=point["learning_rate"],
        seed=point["seed"],
        final_loss=loss if math.isfinite(loss) else math.inf,
        steps=result["steps"],
        phases=cost.phase_flops(config),
        seconds=result["seconds"],
        curve=tuple(curves[metric]),
      )
    )
  return records


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
  """The outcome of an arm at its best learning rate.

  Attributes:
    arm: The arm.
    learning_rate: Its best rate.
    loss: The final loss.
    difference: The final loss minus that of the baseline's run of the same
      seed.
    steps_ratio: The steps to the baseline's final loss, divided by the
      baseline's steps; None unless all seeds reach it.
    flops_ratio: The same for FLOPs.
    reached: How many seeds reach it.
    flops: Its total FLOPs, divided by the baseline's.
    control: The arm that it is judged against: the baseline, or a baseline with
      as few FLOPs as this arm.
    at_equal_flops: The final loss minus that of the control's run of the same
      seed.
  """

  arm: str
  learning_rate: float
  loss: statistics.Interval
  difference: statistics.Interval | None
  steps_ratio: statistics.Interval | None
  flops_ratio: statistics.Interval | None
  reached: int
  flops: float
  control: str
  at_equal_flops: statistics.Interval | None


def best_rate(records: Sequence[Record], arm: str) -> float | None:
  """Returns the rate at which an arm's first seed has the lowest final loss."""
  seeds = [r.seed for r in records if r.arm == arm]
  candidates = [
    record
    for record in records
    if record.arm == arm
    and record.seed == min(seeds)
    and math.isfinite(record.final_loss)
  ]
  if not candidates:
    return None
  return min(candidates, key=lambda record: record.final_loss).learning_rate


def ratios(
  record: Record, baseline: Record
) -> tuple[float | None, float | None]:
  """Returns the fractions of the baseline's steps and FLOPs to its loss."""
  step = record.steps_to(baseline.final_loss)
  if step is None:
    return None, None
  return step / baseline.steps, record.flops_until(step) / baseline.flops


def at_best_rates(
  records: Sequence[Record],
) -> dict[str, dict[int, Record]]:
  """Returns the runs of each arm at its best rate, by seed."""
  found: dict[str, dict[int, Record]] = {}
  for arm in dict.fromkeys(record.arm for record in records):
    rate = best_rate(records, arm)
    if rate is not None:
      found[arm] = {
        r.seed: r for r in records if (r.arm, r.learning_rate) == (arm, rate)
      }
  return found


def compare(
  records: Sequence[Record],
  baseline: str = "baseline",
  controls: Mapping[str, str] | None = None,
) -> dict[str, Outcome]:
  """Compares all arms with the baseline, each at its best rate.

  Args:
    records: The runs.
    baseline: The baseline.
    controls: By arm, a baseline with as few FLOPs to judge it against.

  Returns:
    The outcomes by arm.
  """
  best = at_best_rates(records)
  base = best.get(baseline, {})
  outcomes = {}
  for arm, runs in best.items():
    pairs = [(run, base[seed]) for seed, run in runs.items() if seed in base]
    reached = [ratios(run, other) for run, other in pairs if run.curve]
    control = (controls or {}).get(arm, baseline)
    others = best.get(control, {})
    losses = statistics.mean(run.final_loss for run in runs.values())
    assert losses is not None
    outcomes[arm] = Outcome(
      arm=arm,
      learning_rate=next(iter(runs.values())).learning_rate,
      loss=losses,
      difference=statistics.mean(r.final_loss - b.final_loss for r, b in pairs),
      steps_ratio=statistics.mean(steps for steps, _ in reached),
      flops_ratio=statistics.mean(flops for _, flops in reached),
      reached=sum(steps is not None for steps, _ in reached),
      flops=pairs[0][0].flops / pairs[0][1].flops if pairs else math.nan,
      control=control,
      at_equal_flops=statistics.mean(
        run.final_loss - others[seed].final_loss
        for seed, run in runs.items()
        if seed in others
      ),
    )
  return outcomes


@dataclasses.dataclass(frozen=True)
class Verdict:
  """Whether to share.

  Attributes:
    word: `share`, `do not share` or `cannot tell`.
    reason: A sentence.
    arm: The arm that it is about.
  """

  word: str
  reason: str
  arm: str


def judge(outcomes: Mapping[str, Outcome], arms: Sequence[str]) -> Verdict:
  """Judges whether the best of `arms` is significantly below its control.

  Args:
    outcomes: The outcomes by arm.
    arms: The arms that share weights. The one that is lowest relative to its
      control is judged.
  """
  found = [
    (outcomes[arm].at_equal_flops, outcomes[arm])
    for arm in arms
    if arm in outcomes
  ]
  pairs = [(each, outcome) for each, outcome in found if each is not None]
  if not pairs:
    return Verdict(CANNOT_TELL, "no run that shares weights has finished.", "")
  difference, best = min(pairs, key=lambda pair: pair[0].mean)
  control = "the baseline"
  if best.control != "baseline":
    control = f"{best.control}, a baseline with as few FLOPs"
  if difference.high < 0:
    return Verdict(
      SHARE,
      f"{best.arm} ends {-difference.mean:.3f} below {control}; 95% interval "
      f"{-difference.high:.3f} to {-difference.low:.3f}.",
      best.arm,
    )
  if difference.low > 0:
    return Verdict(
      DO_NOT_SHARE,
      f"even {best.arm} ends {difference.mean:.3f} above {control}; 95% "
      f"interval {difference.low:.3f} to {difference.high:.3f}.",
      best.arm,
    )
  return Verdict(
    CANNOT_TELL,
    f"{best.arm} minus {control} is {difference}; {_seeds_needed(difference)}.",
    best.arm,
  )


def _seeds_needed(difference: statistics.Interval) -> str:
  """Returns how many seeds would tell, if mean and deviation stay the same."""
  if difference.n < 2:
    return "more than one seed is needed"
  deviation = (difference.high - difference.mean) * math.sqrt(difference.n)
  deviation /= statistics.quantile(difference.n)
  for n in range(difference.n + 1, 101):
    if statistics.quantile(n) * deviation / math.sqrt(n) < abs(difference.mean):
      return f"about {n} seeds would show a difference of this size"
  return "not even 100 seeds would show a difference of this size"
