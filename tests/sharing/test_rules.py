"""Corner cases of the untie rules; the rest is in `tests/properties`."""

from absl.testing import parameterized
import tensorflow as tf

from swe_tf import errors
from swe_tf.sharing import schedule

_WHOLE = (0, 0, 0, 0)
_HIGH, _LOW = 0.9, 0.1


def _ask(rule, step, *adjacent, groups=_WHOLE):
  cosines = schedule.GradientCosines(sum(adjacent) / 3, adjacent)
  return rule.regroup(step, cosines, groups)


class UntieByCorrelationTest(tf.test.TestCase):
  def test_looks_every_interval(self):
    rule = schedule.UntieByCorrelation(interval=10)
    self.assertEqual(rule.cosine_interval, 10)
    self.assertEqual(
      [rule.next_decision(s) for s in (0, 9, 10, 15)], [10, 10, 20, 20]
    )
    for step in (0, 5, 11):  # Not its steps: nothing is decided.
      self.assertEqual(_ask(rule, step, _LOW, _LOW, _LOW), _WHOLE)
    self.assertEmpty(rule.decisions)

  def test_half_is_not_most(self):
    rule = schedule.UntieByCorrelation(interval=10, patience=1)
    cosines = schedule.GradientCosines(0.5, (_LOW, _LOW, _HIGH, _HIGH))
    self.assertEqual(rule.regroup(10, cosines, (0,) * 5), (0,) * 5)

  def test_rho_itself_is_not_low(self):
    rule = schedule.UntieByCorrelation(interval=10, rho=0.5, patience=1)
    self.assertEqual(_ask(rule, 10, 0.5, 0.5, 0.5), _WHOLE)

  def test_what_was_not_measured_counts_for_nothing(self):
    rule = schedule.UntieByCorrelation(interval=10, patience=2)
    _ask(rule, 10, _LOW, _LOW, _LOW)
    self.assertEqual(_ask(rule, 20, *[float("nan")] * 3), _WHOLE)
    self.assertLen(rule.decisions, 1)
    self.assertEqual(_ask(rule, 30, _LOW, _LOW, _LOW), schedule.UNTIED)

  def test_one_unit_has_no_neighbour(self):
    rule = schedule.UntieByCorrelation(interval=10, patience=1)
    nothing = schedule.GradientCosines(float("nan"), ())
    self.assertEqual(rule.regroup(10, nothing, (0,)), (0,))


class StagesTest(parameterized.TestCase):
  @parameterized.parameters(
    ([(9, 2)], "step 9, which is not between 0 and the untie step .8."),
    ([(0, 2)], "step 0, which"),
    ([(3, 2), (5, 3)], "units of 3, after units of 2"),
    ([(3, 1)], "units of 1, after units of 1"),
  )
  def test_stages_that_cannot_follow_each_other(self, stages, message):
    with self.assertRaisesRegex(errors.UsageError, message):
      schedule.UntieInStages(8, stages)
