"""Rules with a fixed untie step: all at once, or in stages."""

from absl.testing import parameterized

from swe_tf import errors
from swe_tf.sharing import schedule
from swe_tf.tasks import sharing

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


class ConfigTest(parameterized.TestCase):
  def test_makes_the_rule_of_the_config(self):
    stage = sharing.StageConfig(unit_size=4, from_fraction=0.05)
    config = sharing.SharingConfig(
      rule="staged", unit_size=2, untie_fraction=0.1, stages=[stage]
    )
    rule = sharing.make_untie_rule(config, 1000)
    self.assertEqual((rule.untie_step, rule.stages), (100, [(50, 2)]))
    self.assertIsNone(rule.cosine_interval)
    for name, split in (("adaptive", False), ("split", True)):
      config = sharing.SharingConfig(rule=name, check_interval=7, rho=0.2)
      rule = sharing.make_untie_rule(config, 1000)
      self.assertEqual((rule.split, rule.cosine_interval), (split, 7))
    for mode in ("none", "reparameterize", "stem_branch"):
      config = sharing.SharingConfig(rule="adaptive", mode=mode)
      self.assertEqual(sharing.make_untie_rule(config, 1000).untie_step, 0)

  @parameterized.parameters(
    (dict(mode="half"), r"mode \('half'\) must be one of swe, none"),
    (dict(rule="never"), r"rule \('never'\) must be one of fixed"),
    (dict(stages=[sharing.StageConfig()]), "stages is set"),
    (dict(rule="adaptive", rho=1.5), r"rho \(1.5\)"),
    (dict(rule="split", patience=0), r"patience \(0\)"),
    (dict(rule="adaptive", check_interval=0), r"interval \(0\)"),
    (
      dict(
        rule="staged",
        unit_size=2,
        stages=[sharing.StageConfig(unit_size=3, from_step=1)],
      ),
      "no multiple of",
    ),
  )
  def test_is_refused(self, config, message):
    with self.assertRaisesRegex(errors.UsageError, message):
      sharing.check_sharing(sharing.SharingConfig(**config), 1000)
