"""Intervals cover what they say, words follow, and so do outcomes."""

import math

import numpy as np
import pytest

from experiments import equal_loss
from swe_tf.analysis import outcome as outcome_lib
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
    ratio = equal_loss.ratio(
      [arm[s] - base[s] for s in arm], [half[s] - base[s] for s in arm]
    )
    cost = equal_loss.cost_for_equal_loss((arm, 0.6), (base, 1.0), (half, 0.5))
    hits += (
      _covers(statistics.mean(arm.values()), 1.77),
      _covers(statistics.paired(arm, base), 0.02),
      _covers(ratio, 0.2),
      _covers(cost, 0.6 * math.exp(octave * 0.2)),
    )
  assert (hits / _RUNS >= 0.93).all(), hits / _RUNS
  assert (hits / _RUNS <= 0.97).all(), hits / _RUNS


def test_an_uncertain_denominator_gives_no_bound():
  found = equal_loss.ratio([1.0, 1.1, 0.9], [0.1, -0.1, 0.05])
  assert (found.low, found.high) == (-math.inf, math.inf)
  seeds = [({seed: 1.0}, 1.0) for seed in range(3)]  # None in common.
  assert equal_loss.cost_for_equal_loss(*seeds) is None


def _record(arm, seed, final, rate=1e-3, phases=((100, 10.0),)):
  point = dict(arm=arm, learning_rate=rate, seed=seed, final_loss=final)
  steps = sum(n for n, _ in phases)
  return outcome_lib.Record(**point, steps=steps, phases=phases, seconds=1.0)


def _runs(cheap_losses, base_losses=(2.0, 2.1, 1.9)):
  """Returns runs of seeds 1, 2, ...; seed 0 chose the rate, and is far off."""
  cheap = ((30, 1.0), (70, 10.0))
  runs = [_record("baseline", 0, 1.0), _record("cheap", 0, 5.0, phases=cheap)]
  runs += [_record("baseline", i, x) for i, x in enumerate(base_losses, 1)]
  runs += [
    _record("cheap", i, x, phases=cheap) for i, x in enumerate(cheap_losses, 1)
  ]
  return runs


def test_fresh_seeds_are_paired_and_the_tuning_seed_does_not_count():
  outcome = outcome_lib.compare(_runs([1.8, 1.9, 1.7]))["cheap"]
  assert outcome.flops == pytest.approx(0.73)
  assert outcome.loss.mean == pytest.approx(1.8) and outcome.loss.n == 3
  assert outcome.difference.mean == pytest.approx(-0.2)
  assert outcome.difference.high == pytest.approx(-0.2)
  assert outcome.tuning_difference == pytest.approx(4.0)


def test_arms_are_compared_at_their_own_best_rates():
  runs = _runs([1.8, 1.8, 1.8])
  runs.append(_record("cheap", 0, 1.5, rate=2e-3))
  runs.append(_record("baseline", 0, math.inf, rate=2e-3))
  outcomes = outcome_lib.compare(runs)
  assert outcomes["cheap"].learning_rate == 2e-3
  assert outcomes["cheap"].loss is None  # It has no fresh seed.
  assert outcomes["baseline"].learning_rate == 1e-3
  # A lower loss on a fresh seed does not choose a rate.
  runs += [_record("baseline", 1, 0.1, rate=4e-3)]
  assert outcome_lib.at_best_rates(runs)["baseline"][1].learning_rate == 1e-3


@pytest.mark.parametrize(
  "losses, word, reason",
  [
    ([1.80, 1.91, 1.69], outcome_lib.SHARE, "below the baseline"),
    ([2.20, 2.29, 2.11], outcome_lib.DO_NOT_SHARE, "above the baseline"),
    ([1.9, 2.3, 1.7], statistics.CANNOT_TELL, "cheap minus the baseline is"),
    ([1.9], statistics.CANNOT_TELL, "one seed"),
    ([], statistics.CANNOT_TELL, "no run that shares"),
  ],
)
def test_the_verdict_needs_an_interval_that_excludes_zero(losses, word, reason):
  verdict = outcome_lib.judge(outcome_lib.compare(_runs(losses)), ["cheap"])
  assert verdict.word == word and reason in verdict.reason


@pytest.mark.parametrize(
  "cheap, base, word, reason",
  [
    ([math.inf, 1.9, 1.7], [2.0, 2.1], "do not share", "even cheap has diverg"),
    ([1.8, 1.9], [2.0, math.inf], "cannot tell", "the baseline has diverged"),
  ],
)
def test_a_run_that_diverged_counts(cheap, base, word, reason):
  outcomes = outcome_lib.compare(_runs(cheap, base))
  verdict = outcome_lib.judge(outcomes, ["cheap"])
  assert verdict.word == word and reason in verdict.reason
  assert outcomes["cheap"].difference.word() in ("costs", "cannot tell")


def test_a_cheaper_arm_is_judged_by_a_baseline_with_as_few_flops():
  runs = _runs([2.02, 2.12, 1.921])  # Above the baseline.
  runs += [
    _record("short", seed, loss, phases=((73, 10.0),))
    for seed, loss in enumerate((2.21, 2.30, 2.12), 1)
  ]
  controls = {"cheap": "short"}
  outcomes = outcome_lib.compare(runs, controls=controls)
  cheap = outcomes["cheap"]
  assert cheap.difference.mean > 0
  assert cheap.at_equal_flops.mean == pytest.approx(-0.569 / 3)
  # On the line from (0.73, +0.21) to (1, 0), +0.0203 is at 0.97.
  share = (0.061 / 3) / (0.63 / 3)
  equal = equal_loss.compare(runs, "short", 0)["cheap"].equal_loss
  assert equal.mean == pytest.approx(0.73 * 0.73**-share, rel=1e-3)
  verdict = outcome_lib.judge(outcomes, ["cheap"])
  assert verdict.word == outcome_lib.SHARE and "short" in verdict.reason
  without = outcome_lib.judge(outcome_lib.compare(runs), ["cheap"])
  assert without.word == outcome_lib.DO_NOT_SHARE
