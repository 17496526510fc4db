"""The method of an experiment: chosen, checked, applied."""

import dataclasses

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import rules
from swe_tf.modeling import registry
from swe_tf.sharing import plan as plan_lib
from swe_tf.training import phases


def choice_of(config: cfg.ExperimentConfig) -> catalog.Choice:
  """Returns what an experiment says about its method."""
  task = config.task.as_dict()
  encoder = registry.encoder_of(task)
  return catalog.read(
    task, config.trainer.train_steps, encoder.num_layers if encoder else None
  )


def check(config: cfg.ExperimentConfig) -> None:
  """Raises unless an experiment can be trained by the method it chooses."""
  sharing, train_steps = config.task.sharing, config.trainer.train_steps
  rules.tau_of(sharing, train_steps)
  rules.make_rule(sharing, train_steps)
  choice = choice_of(config)
  method = catalog.find(choice)
  if method.check is not None:
    catalog.load(method.check)(config)
  if choice.growth_config.get("fractions") and not method.fractions:
    raise errors.UsageError(
      f"task.growth.fractions is set, but task.growth.method is "
      f"{choice.growth!r}."
    )
  if sharing.loops and method.name not in (catalog.SWE, catalog.ALBERT):
    raise errors.UsageError(
      "task.sharing.loops is set, but the method is "
      f"{method.name!r}, which ties no layers."
    )
  if choice.num_layers is not None:
    for units in (sharing, *sharing.stages):
      plan_lib.check_unit_size(
        units.unit_size, choice.num_layers, sharing.own_layers
      )


def apply(ingredients: phases.Ingredients) -> phases.Training:
  """Returns how a run is trained by the method of its experiment."""
  choice = choice_of(ingredients.config)
  if ingredients.untie_rule is not None:
    choice = dataclasses.replace(choice, untie_step=None)
  return catalog.load(catalog.find(choice).build)(ingredients)
