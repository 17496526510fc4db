"""Chooses, checks and applies the method of an experiment."""

import dataclasses

from official.core import config_definitions as cfg
from swe_tf.methods import catalog
from swe_tf.methods import checks
from swe_tf.methods import rules
from swe_tf.modeling import registry
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
  checks.check(config.as_dict())
  rules.make_rule(config.task.sharing, config.trainer.train_steps)
  method = catalog.find(choice_of(config))
  if method.check is not None:
    catalog.load(method.check)(config)


def apply(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run by the method of its experiment."""
  choice = choice_of(ingredients.config)
  if ingredients.untie_rule is not None:
    choice = dataclasses.replace(choice, untie_step=None)
  return catalog.load(catalog.find(choice).build)(ingredients)
