"""`analysis.statistics`: intervals cover what they say, and words follow."""

import math

import numpy as np
import pytest

from swe_tf.analysis import statistics

_RUNS = 4000


def _covers(interval, value):
  return interval.low <= value <= interval.high


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_intervals_cover_the_truth(seeds):
  """At least 93% of 95% intervals, for means, differences, ratios, costs."""
  random = np.random.default_rng(seeds)
  hits = np.zeros(4)
  octave = math.log(2.0)
  for _ in range(_RUNS):
    # What a seed has in common, then each arm's own noise.
    common = random.normal(0, 0.03, seeds)
    arm, base, half = (
      dict(enumerate(center + common + random.normal(0, 0.01, seeds)))
      for center in (1.77, 1.75, 1.85)
    )
    ratio = statistics.ratio(
      [arm[s] - base[s] for s in arm], [half[s] - base[s] for s in arm]
    )
    cost = statistics.cost_for_equal_loss(
      statistics.Budget(arm, 0.6),
      statistics.Budget(base, 1.0),
      statistics.Budget(half, 0.5),
    )
    hits += (
      _covers(statistics.mean(arm.values()), 1.77),
      _covers(statistics.paired(arm, base), 0.02),
      _covers(ratio, 0.2),
      _covers(cost, 0.6 * math.exp(octave * 0.2)),
    )
  assert (hits / _RUNS >= 0.93).all(), hits / _RUNS
  assert (hits / _RUNS <= 0.97).all(), hits / _RUNS


def test_words_need_an_interval_that_excludes_the_neutral_value():
  interval = statistics.Interval
  assert interval(-0.085, -0.342, 0.172, 3).word() == "cannot tell"
  assert interval(-0.03, -0.058, -0.0004, 8).word() == "pays"
  assert interval(0.07, 0.03, 0.11, 3).word() == "costs"
  assert interval(0.5, -math.inf, math.inf, 1).word() == "cannot tell"
  assert interval(0.6, 0.5, 0.7, 3).word(neutral=1.0) == "pays"


def test_costs_for_an_equal_loss():
  # The baseline's loss falls by 1 with every doubling of its cost.
  seeds = {1: 0.1, 2: -0.1, 3: 0.0}
  shifted = lambda loss: {s: loss + shift for s, shift in seeds.items()}
  cost = statistics.cost_for_equal_loss(
    statistics.Budget(shifted(1.5), 0.6),
    statistics.Budget(shifted(2.0), 1.0),
    statistics.Budget(shifted(3.0), 0.5),
  )
  assert cost.mean == pytest.approx(0.6 / 2**0.5)
  assert cost.low == pytest.approx(cost.mean) == cost.high
  nothing = statistics.Budget({9: 1.0}, 1.0)
  assert (
    statistics.cost_for_equal_loss(
      nothing, statistics.Budget(shifted(2.0), 1.0), nothing
    )
    is None
  )


def test_an_uncertain_denominator_gives_no_bound():
  found = statistics.ratio([1.0, 1.1, 0.9], [0.1, -0.1, 0.05])
  assert (found.low, found.high) == (-math.inf, math.inf)


def test_seeds_needed():
  far = statistics.mean([0.1, 0.2, 0.3])
  assert statistics.seeds_needed(far) == 4
  assert statistics.seeds_needed(statistics.mean([-1.0, 1.0, 0.001])) is None
