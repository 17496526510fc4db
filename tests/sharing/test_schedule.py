"""Rules with a fixed untie step: all at once, or in stages."""

from absl.testing import parameterized

from swe_tf import errors
from swe_tf.sharing import schedule

_WHOLE = (0, 0, 0, 0)
_NOTHING = schedule.GradientCosines(float("nan"))


class StagesTest(parameterized.TestCase):
  def test_goes_through_the_stages(self):
    rule = schedule.UntieInStages(8, [(3, 2)])
    self.assertEqual(
      [rule.next_decision(step) for step in (0, 2, 3, 7, 8)],
      [3, 3, 8, 8, None],
    )
    groups = {
      step: rule.regroup(step, _NOTHING, _WHOLE) for step in (2, 3, 7, 8)
    }
    self.assertEqual(
      groups,
      {2: _WHOLE, 3: (0, 1, 0, 1), 7: (0, 1, 0, 1), 8: schedule.UNTIED},
    )
    # Asked again, in the groups that it chose, it stays there.
    self.assertEqual(rule.regroup(4, _NOTHING, (0, 1, 0, 1)), (0, 1, 0, 1))

  def test_stages_may_come_in_any_order(self):
    rule = schedule.UntieInStages(8, [(5, 4), (3, 2)])
    self.assertEqual(rule.stages, [(3, 2), (5, 4)])

  @parameterized.parameters(
    ([(9, 2)], "step 9, which is not between 0 and the untie step .8."),
    ([(0, 2)], "step 0, which"),
    ([(3, 2), (5, 3)], "units of 3, after units of 2"),
    ([(3, 1)], "units of 1, after units of 1"),
  )
  def test_stages_that_cannot_follow_each_other(self, stages, message):
    with self.assertRaisesRegex(errors.UsageError, message):
      schedule.UntieInStages(8, stages)
