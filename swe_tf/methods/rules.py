"""Makes untie rules from `task.sharing`: the `make` of the catalog's rules."""

from swe_tf.methods import catalog
from swe_tf.methods import checks
from swe_tf.methods import config as config_lib
from swe_tf.sharing import adaptive
from swe_tf.sharing import schedule
from swe_tf.sharing import untie_step as untie_step_lib


def make_rule(
  config: config_lib.SharingConfig, train_steps: int
) -> schedule.UntieRule:
  """Returns the rule of a config.

  Args:
    config: `task.sharing`.
    train_steps: `trainer.train_steps`.

  Raises:
    UsageError: If the config is wrong.
  """
  checks.check_rule(config.as_dict())
  return catalog.load(catalog.rules()[config.rule].make)(config, train_steps)


def make_fixed(
  config: config_lib.SharingConfig, train_steps: int
) -> schedule.UntieRule:
  """Makes the paper's rule."""
  return schedule.UntieAtStep(tau_of(config, train_steps))


def make_staged(
  config: config_lib.SharingConfig, train_steps: int
) -> schedule.UntieRule:
  """Makes the rule that goes through larger and larger units."""
  stages = checks.stages_of(config.as_dict(), train_steps)
  return schedule.UntieInStages(tau_of(config, train_steps), stages)


def make_adaptive(
  config: config_lib.SharingConfig, train_steps: int, split: bool = False
) -> schedule.UntieRule:
  """Makes the rule that watches the gradients and unties all at once."""
  del train_steps
  return adaptive.UntieByCorrelation(
    config.check_interval, config.rho, config.patience, split=split
  )


def make_split(
  config: config_lib.SharingConfig, train_steps: int
) -> schedule.UntieRule:
  """Makes the rule that unties where neighbours disagree."""
  return make_adaptive(config, train_steps, split=True)


def tau_of(config: config_lib.SharingConfig, train_steps: int) -> int:
  """Returns the tau of a config, for a rule that fixes it."""
  return untie_step_lib.resolve_untie_step(
    train_steps,
    untie_step=config.untie_step,
    untie_fraction=config.untie_fraction,
  )
