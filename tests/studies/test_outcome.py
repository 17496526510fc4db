"""What a comparison came to, for runs that are made up."""

import math

import pytest

from swe_tf.studies import outcome as outcome_lib


def _record(arm, seed, final, rate=1e-3, phases=((100, 10.0),), slope=1.0):
  steps = sum(n for n, _ in phases)
  curve = tuple(
    (step, final + slope * (1 - step / steps))
    for step in range(0, steps + 1, 10)
  )
  return outcome_lib.Record(
    arm=arm,
    learning_rate=rate,
    seed=seed,
    final_loss=final,
    steps=steps,
    phases=phases,
    seconds=1.0,
    curve=curve,
  )


def _runs(cheap_losses, base_losses=(2.0, 2.1, 1.9)):
  cheap = ((30, 1.0), (70, 10.0))
  runs = [_record("baseline", i, x) for i, x in enumerate(base_losses)]
  runs += [
    _record("cheap", i, x, phases=cheap) for i, x in enumerate(cheap_losses)
  ]
  return runs


def test_savings_are_read_off_the_curve_seed_by_seed():
  # Each is 0.2 below its baseline: there after 80 of 100 steps.
  outcome = outcome_lib.compare(_runs([1.8, 1.9, 1.7]))["cheap"]
  assert outcome.steps_ratio.mean == pytest.approx(0.8)
  # 30 steps of 1 and 50 of 10, of 100 steps of 10.
  assert outcome.flops_ratio.mean == pytest.approx(0.53)
  assert outcome.flops == pytest.approx(0.73)
  assert outcome.difference.mean == pytest.approx(-0.2)
  assert outcome.difference.high == pytest.approx(-0.2)
  assert outcome.reached == 3


def test_a_seed_that_does_not_get_there_leaves_no_ratio():
  outcome = outcome_lib.compare(_runs([1.8, 2.2, 1.7]))["cheap"]
  assert outcome.steps_ratio is None and outcome.reached == 2


def test_arms_are_compared_at_their_own_best_rates():
  runs = _runs([1.8, 1.8, 1.8])
  runs += [
    _record("cheap", 0, 1.5, rate=2e-3),
    _record("baseline", 0, math.inf, rate=2e-3),
  ]
  outcomes = outcome_lib.compare(runs)
  assert outcomes["cheap"].learning_rate == 2e-3
  assert outcomes["cheap"].loss.n == 1
  assert outcomes["baseline"].learning_rate == 1e-3


@pytest.mark.parametrize(
  "losses, word, reason",
  [
    ([1.80, 1.91, 1.69], outcome_lib.SHARE, "below the baseline"),
    ([2.20, 2.29, 2.11], outcome_lib.DO_NOT_SHARE, "above the baseline"),
    ([1.9, 2.3, 1.7], outcome_lib.CANNOT_TELL, "seeds would show"),
    ([1.9], outcome_lib.CANNOT_TELL, "more than one seed"),
  ],
)
def test_the_verdict_needs_an_interval_that_excludes_zero(losses, word, reason):
  verdict = outcome_lib.judge(outcome_lib.compare(_runs(losses)), ["cheap"])
  assert verdict.word == word and reason in verdict.reason
  assert verdict.arm == "cheap"


def test_a_cheaper_arm_is_judged_by_a_baseline_with_as_few_flops():
  runs = _runs([2.02, 2.12, 1.921])  # Above the baseline.
  runs += [
    _record("short", seed, loss, phases=((73, 10.0),))
    for seed, loss in enumerate((2.21, 2.30, 2.12))
  ]
  outcomes = outcome_lib.compare(runs, controls={"cheap": "short"})
  assert outcomes["cheap"].difference.mean > 0
  assert outcomes["cheap"].at_equal_flops.mean == pytest.approx(-0.569 / 3)
  verdict = outcome_lib.judge(outcomes, ["cheap"])
  assert verdict.word == outcome_lib.SHARE and "short" in verdict.reason
  without = outcome_lib.judge(outcome_lib.compare(runs), ["cheap"])
  assert without.word == outcome_lib.DO_NOT_SHARE


def test_nothing_to_judge():
  outcomes = outcome_lib.compare(_runs([]))
  assert outcome_lib.judge(outcomes, ["cheap"]).word == outcome_lib.CANNOT_TELL


def test_records_survive_json():
  runs = [
    _record("baseline", 0, 2.0),
    _record("baseline", 1, math.inf, slope=0.0),
  ]
  runs[1] = outcome_lib.from_table(runs[1].as_table() | {"curve": []})
  assert runs[1].as_table()["final_loss"] is None
  for run in runs:
    assert outcome_lib.from_table(run.as_table()) == run
