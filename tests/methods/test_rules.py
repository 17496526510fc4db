"""Untie rules from a config."""

from absl.testing import parameterized

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from tests import tiny


def _make_rule(sharing):
  return catalog.make_rule(
    catalog.read({"sharing": sharing.as_dict()}, 1000, None)
  )


class ConfigTest(parameterized.TestCase):
  def test_makes_the_rule_of_the_config(self):
    stage = config_lib.StageConfig(unit_size=4, from_fraction=0.05)
    config = config_lib.SharingConfig(
      rule="staged", unit_size=2, untie_fraction=0.1, stages=[stage]
    )
    rule = _make_rule(config)
    self.assertEqual((rule.untie_step, rule.stages), (100, [(50, 2)]))
    self.assertIsNone(rule.cosine_interval)
    for name, split in (("adaptive", False), ("split", True)):
      config = config_lib.SharingConfig(rule=name, check_interval=7, rho=0.2)
      rule = _make_rule(config)
      self.assertEqual((rule.split, rule.cosine_interval), (split, 7))
    stage = config_lib.StageConfig(unit_size=3, from_step=1)
    with self.assertRaisesRegex(errors.UsageError, "not a multiple of"):
      _make_rule(
        config_lib.SharingConfig(rule="staged", unit_size=2, stages=[stage])
      )

  @parameterized.parameters(
    (dict(mode="half"), r"mode \('half'\) must be one of equal_init, none"),
    (dict(rule="never"), r"rule \('never'\) must be one of fixed"),
    (dict(stages=[{}]), "stages is set"),
    (dict(rule="adaptive", rho=1.5), r"rho \(1.5\)"),
    (dict(rule="split", patience=0), r"patience \(0\)"),
    (dict(rule="adaptive", check_interval=0), r"interval \(0\)"),
  )
  def test_is_refused(self, config, message):
    with self.assertRaisesRegex(errors.UsageError, message):
      tiny.config_of(tiny.overrides("unused"), {"task": {"sharing": config}})
