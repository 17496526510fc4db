"""What an arm of the map saves, and the verdict by the rule of its study.

All are functions of the runs of one regime. `swe_tf.studies.outcome` compares
seed by seed; these measure several seeds together.
"""

import math

import numpy as np

from swe_tf.analysis import scalars
from swe_tf.analysis import statistics
from swe_tf.studies import outcome as outcome_lib

SEEDS = 3  # An arm with fewer was dropped.
_DRAWS = 10_000


def flops_to_mean(
  records: list[outcome_lib.Record], arm: str
) -> statistics.Interval | None:
  """Returns the fraction of the baseline's FLOPs to its mean final loss.

  Less noisy than seed by seed, where a lucky baseline may never be reached.
  """
  best = outcome_lib.at_best_rates(records)
  base = list(best["baseline"].values())
  target = sum(run.final_loss for run in base) / len(base)
  parts = []
  for run in best[arm].values():
    if run.curve:
      step = run.steps_to(target)
      parts.append(
        None if step is None else run.flops_until(step) / base[0].flops
      )
  return statistics.mean(parts)


def saving(
  records: list[outcome_lib.Record], arm: str
) -> tuple[float, float, float]:
  """Returns the FLOPs to the baseline's mean final loss, and their interval.

  They are read off the mean of an arm's curves, as a fraction of the baseline's
  FLOPs. The 95% interval resamples the seeds of both arms; infinity stands for
  curves that never get that low.

  Args:
    records: Runs at one learning rate for each arm.
    arm: The arm.
  """
  mine = [record for record in records if record.arm == arm]
  base = [record for record in records if record.arm == "baseline"]
  steps = np.array([step for step, _ in mine[0].curve])
  curves = np.array([[loss for _, loss in run.curve] for run in mine])
  finals = np.array([run.final_loss for run in base])

  def part(curve, target) -> float:
    step = scalars.steps_to_reach(list(zip(steps, curve)), target)
    if step is None:
      return math.inf
    return mine[0].flops_until(step) / base[0].flops

  generator = np.random.default_rng(0)
  drawn = [
    part(
      curves[generator.integers(len(mine), size=len(mine))].mean(axis=0),
      finals[generator.integers(len(base), size=len(base))].mean(),
    )
    for _ in range(_DRAWS)
  ]
  # Not interpolated: there may be infinities.
  low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
  return part(curves.mean(axis=0), finals.mean()), float(low), float(high)


def equal_loss(
  records: list[outcome_lib.Record], arm: str
) -> tuple[float, float, float] | None:
  """Returns the FLOPs of an arm, divided by a baseline's for the same loss.

  That baseline is fully decayed too: its loss is a straight line in the
  logarithm of its FLOPs, through `short` and `baseline`. The 95% interval
  resamples the seeds of all three.

  Args:
    records: The runs of a regime.
    arm: The arm.

  Returns:
    The ratio and its interval; None unless each has three seeds.
  """
  best = outcome_lib.at_best_rates(records)
  arms = [list(best.get(n, {}).values()) for n in (arm, "short", "baseline")]
  if min(map(len, arms)) < SEEDS:
    return None
  flops = [math.log(runs[0].flops) for runs in arms]
  generator = np.random.default_rng(0)
  drawn = []
  for draw in range(1 + _DRAWS):
    mine, short, base = (
      losses[generator.integers(len(losses), size=len(losses))].mean()
      if draw
      else losses.mean()
      for losses in (
        np.array([run.final_loss for run in runs]) for runs in arms
      )
    )
    slope = (base - short) / (flops[2] - flops[1])
    drawn.append(math.exp(flops[0] - flops[2] - (mine - base) / slope))
  low, high = np.quantile(drawn[1:], [0.025, 0.975])
  return drawn[0], float(low), float(high)


def minus_short(
  records: list[outcome_lib.Record], arm: str
) -> statistics.Interval | None:
  """Returns the final loss minus that of the baseline with as few FLOPs."""
  best = outcome_lib.at_best_rates(records)
  short = best.get("short", {})
  return statistics.mean(
    run.final_loss - short[seed].final_loss
    for seed, run in best[arm].items()
    if seed in short
  )


def verdict_of(arm: outcome_lib.Outcome, base: outcome_lib.Outcome) -> str:
  """Returns the verdict on an arm by the rule of the study files."""
  if arm.loss.n < 2 or base.loss.n < 2:
    return "dropped"
  errors = sum(map(_standard_error, (arm.loss, base.loss)))
  if arm.loss.mean < base.loss.mean - errors:
    return "**pays**"
  return "costs" if arm.loss.mean > base.loss.mean + errors else "as good"


def _standard_error(each: statistics.Interval) -> float:
  from scipy import stats

  return (each.high - each.mean) / float(stats.t.ppf(0.975, each.n - 1))
