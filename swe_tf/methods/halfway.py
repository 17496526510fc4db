"""The rule that unties in the middle of the run, whatever the config says."""

from swe_tf.methods import catalog
from swe_tf.sharing import schedule


def _make(resolved: catalog.Resolved) -> schedule.UntieRule:
  return schedule.UntieAtStep(resolved.train_steps // 2)


catalog.register_rule(catalog.Rule(name="halfway", make=_make))
