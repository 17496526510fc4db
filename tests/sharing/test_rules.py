"""Rules for untying: in stages, and by what the gradients say."""

import pytest

from swe_tf import errors
from swe_tf.sharing import adaptive
from swe_tf.sharing import schedule
from swe_tf.tasks import sharing

_WHOLE = (0, 0, 0, 0)
_LOW, _HIGH = 0.1, 0.9


def _cosines(*adjacent):
  return schedule.GradientCosines(sum(adjacent) / len(adjacent), adjacent)


def _decide(rule, measured, groups=_WHOLE, first=1):
  """Asks at every interval; returns the groups after each."""
  found = []
  for i, adjacent in enumerate(measured, start=first):
    groups = rule.regroup(i * rule.interval, _cosines(*adjacent), groups)
    found.append(groups)
  return found


_MOST = (_LOW, _LOW, _HIGH)
_FEW = (_LOW, _HIGH, _HIGH)


def test_unties_when_most_are_low_three_times_in_a_row():
  rule = adaptive.UntieByCorrelation(interval=10)
  assert _decide(rule, [_MOST, _MOST, _FEW, _MOST, _MOST, _MOST]) == [
      _WHOLE] * 5 + [schedule.UNTIED]
  assert [d["times_low"] for d in rule.decisions] == [
      [1], [2], [0], [1], [2], [3]]


def test_half_is_not_most():
  rule = adaptive.UntieByCorrelation(interval=10, patience=1)
  assert _decide(rule, [(_LOW, _LOW, _HIGH, _HIGH)], (0,) * 5) == [(0,) * 5]


def test_a_cosine_at_rho_is_not_below_it():
  rule = adaptive.UntieByCorrelation(interval=10, rho=0.5, patience=1)
  assert _decide(rule, [(0.5, 0.5, 0.5)]) == [_WHOLE]


def test_decides_once_for_a_step_and_only_at_its_interval():
  rule = adaptive.UntieByCorrelation(interval=10, patience=2)
  assert rule.next_decision(0) == 10 and rule.next_decision(10) == 20
  for step in (0, 10, 10, 10, 15):
    assert rule.regroup(step, _cosines(*_MOST), _WHOLE) == _WHOLE
  assert len(rule.decisions) == 1
  assert rule.regroup(20, _cosines(*_MOST), _WHOLE) == schedule.UNTIED


def test_what_was_not_measured_decides_nothing():
  rule = adaptive.UntieByCorrelation(interval=10, patience=1)
  nothing = _cosines(float("nan"), float("nan"), float("nan"))
  assert rule.regroup(10, nothing, _WHOLE) == _WHOLE
  assert not rule.decisions


def test_split_cuts_where_two_units_disagree():
  rule = adaptive.UntieByCorrelation(interval=10, patience=2, split=True)
  assert _decide(rule, [
      (_HIGH, _LOW, _HIGH), (_HIGH, _LOW, _LOW), (_HIGH, _HIGH, _LOW),
      (_LOW, _HIGH, _HIGH), (_LOW, _HIGH, _HIGH),
  ]) == [_WHOLE, (0, 0, 2, 2), (0, 0, 2, 3), (0, 0, 2, 3), schedule.UNTIED]


def test_a_rule_that_is_restored_goes_on():
  measured = [_MOST, _MOST, _MOST]
  straight = adaptive.UntieByCorrelation(interval=10)
  expected = _decide(straight, measured)
  first = adaptive.UntieByCorrelation(interval=10)
  begun = _decide(first, measured[:2])
  second = adaptive.UntieByCorrelation(interval=10)
  second.deserialize(first.serialize())
  assert begun + _decide(second, measured[2:], first=3) == expected
  assert second.decisions == straight.decisions


@pytest.mark.parametrize("wrong, says", [
    (dict(interval=0), "interval"), (dict(rho=1.5), "rho"),
    (dict(patience=0), "patience")])
def test_a_rule_that_cannot_be_is_refused(wrong, says):
  with pytest.raises(errors.UsageError, match=says):
    adaptive.UntieByCorrelation(**wrong)


def test_stages_follow_each_other():
  rule = schedule.UntieInStages(30, [(10, 2)])
  unknown = schedule.GradientCosines(float("nan"))
  assert [rule.regroup(step, unknown, _WHOLE) for step in (0, 9, 10, 29, 30)
          ] == [_WHOLE, _WHOLE, (0, 1, 0, 1), (0, 1, 0, 1), schedule.UNTIED]
  assert [rule.next_decision(step) for step in (0, 10, 29, 30)] == [
      10, 30, 30, None]


@pytest.mark.parametrize("stages, says", [
    ([(30, 2)], "not between 0 and the untie step"),
    ([(5, 2), (10, 3)], "a multiple of the one before"),
    ([(5, 1)], "a multiple of the one before")])
def test_stages_that_cannot_be_are_refused(stages, says):
  with pytest.raises(errors.UsageError, match=says):
    schedule.UntieInStages(30, stages)


def test_a_config_makes_the_rule():
  config = sharing.SharingConfig(
      unit_size=2, rule="staged",
      stages=[sharing.StageConfig(unit_size=4, from_fraction=0.05)])
  rule = sharing.make_untie_rule(config, 1000)
  assert (rule.untie_step, rule.stages) == (100, [(50, 2)])
  config = sharing.SharingConfig(rule="split", check_interval=7, rho=0.1)
  rule = sharing.make_untie_rule(config, 1000)
  assert (rule.interval, rule.rho, rule.split) == (7, 0.1, True)
  assert rule.cosine_interval == 7


@pytest.mark.parametrize("wrong, says", [
    (dict(rule="never"), "'never'.* must be one of fixed, staged"),
    (dict(stages=[sharing.StageConfig()]), "'fixed', which has none"),
    (dict(rule="staged", unit_size=2,
          stages=[sharing.StageConfig(unit_size=3, from_step=1)]),
     "no multiple of task.sharing.unit_size"),
    (dict(rule="adaptive", rho=2.0), "rho"),
])
def test_a_config_that_cannot_be_is_refused(wrong, says):
  with pytest.raises(errors.UsageError, match=says):
    sharing.check_sharing(sharing.SharingConfig(**wrong), 1000)
