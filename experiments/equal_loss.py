"""What a baseline would cost that ends with the loss of an arm.

Fieller's theorem gives the ratio of two paired means its 95% interval, exact as
those of `swe_tf.analysis.statistics` are; `tests/analysis/test_statistics.py`
simulates the coverage.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math

import numpy as np

from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import statistics

BASELINE = "baseline"


def ratio(
  numerators: Iterable[float], denominators: Iterable[float]
) -> statistics.Interval:
  """Returns the ratio of two means, paired by seed, with Fieller's interval.

  It is unbounded unless the denominators' mean is significantly not 0.
  """
  a, d = np.array(list(numerators)), np.array(list(denominators))
  n = len(a)
  estimate = float(a.mean() / d.mean())
  unbounded = statistics.Interval(estimate, -math.inf, math.inf, n)
  if n < 2:
    return unbounded
  (var_a, cov), (_, var_d) = np.cov(a, d) * statistics.quantile(n) ** 2 / n
  # All r with |mean(a - r d)| within its own Student's interval of 0.
  square = d.mean() ** 2 - var_d
  linear = a.mean() * d.mean() - cov
  constant = a.mean() ** 2 - var_a
  if square <= 0:
    return unbounded
  root = math.sqrt(max(0.0, linear**2 - square * constant))
  return statistics.Interval(
    estimate, (linear - root) / square, (linear + root) / square, n
  )


# The final losses of an arm by seed, and what a run costs.
Budget = tuple[Mapping[int, float], float]


def cost_for_equal_loss(
  arm: Budget, baseline: Budget, smaller: Budget
) -> statistics.Interval | None:
  """Returns an arm's cost, divided by a baseline's that ends with its loss.

  That baseline is fully decayed: its loss is a straight line in the logarithm
  of its cost, through two budgets that were run, the smaller one with its own
  schedule. None without a seed that all three have.
  """
  (ours, cost), (base, full), (less, part) = arm, baseline, smaller
  seeds = sorted(ours.keys() & base.keys() & less.keys())
  if not seeds:
    return None
  behind = ratio(
    (ours[s] - base[s] for s in seeds), (less[s] - base[s] for s in seeds)
  )
  ends = np.array([behind.mean, behind.low, behind.high])
  mean, low, high = (cost / full * (full / part) ** ends).tolist()
  return statistics.Interval(mean, low, high, behind.n)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome(outcome_lib.Outcome):
  """The outcome of an arm, and its FLOPs for an equal loss.

  Attributes:
    equal_loss: Its FLOPs, divided by those of a fully decayed baseline that
      ends with its loss; None without a baseline of a smaller budget.
  """

  equal_loss: statistics.Interval | None = None


def compare(
  records: Sequence[outcome_lib.Record], smaller: str, tuning_seed: int
) -> dict[str, Outcome]:
  """Compares all arms with the baseline, and with one of a smaller budget."""
  found = outcome_lib.compare(records, tuning_seed=tuning_seed)
  best = outcome_lib.at_best_rates(records, tuning_seed)

  def budget(arm: str) -> Budget:
    runs = best[arm].items()
    losses = {s: run.final_loss for s, run in runs if s != tuning_seed}
    return losses, found[arm].flops

  outcomes = {}
  for arm, each in found.items():
    equal = None
    if {BASELINE, smaller} <= best.keys() and arm not in (BASELINE, smaller):
      equal = cost_for_equal_loss(*map(budget, (arm, BASELINE, smaller)))
    outcomes[arm] = Outcome(**vars(each), equal_loss=equal)
  return outcomes
