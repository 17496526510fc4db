"""Checks and applies the method that an experiment chooses."""

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import rules
from swe_tf.sharing import untie_step as untie_step_lib
from swe_tf.training import phases


def check(config: cfg.ExperimentConfig) -> None:
  """Raises unless an experiment can be trained by the method it chooses."""
  resolved = catalog.resolve(config)
  sharing, growth = resolved.sharing, resolved.growth
  method = catalog.find(resolved)
  rules.tau_of(sharing, resolved.train_steps)  # Even if the method has none.
  if resolved.num_layers is not None:
    for units in (sharing, *sharing.stages):
      untie_step_lib.check_unit_size(units.unit_size, resolved.num_layers)
  rules.make_rule(resolved)
  if growth.fractions and method.growth == catalog.NONE:
    raise errors.UsageError(
      "task.growth.fractions is set, but task.growth.method is 'none'."
    )
  if sharing.loops and method.mode != catalog.SWE:
    raise errors.UsageError(
      f"task.sharing.loops is set, but the method is {method.name!r}, which "
      "ties no layers."
    )
  method.check(config, resolved)


def apply(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run by the method of its experiment."""
  resolved = catalog.resolve(ingredients.config)
  # A rule that is given in code may untie at any step, so the config does not
  # tell a special case.
  find = catalog.chosen if ingredients.untie_rule else catalog.find
  return find(resolved).build(ingredients)
