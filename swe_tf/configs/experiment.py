"""Experiment configs that are completed and checked before anything runs.

Model Garden's drivers call `validate()` once, after all overrides and before
they touch `model_dir`: an error there leaves nothing on disk. It is the only
validator: commands, studies and both drivers rely on it.
"""

import dataclasses

from absl import logging

from official.core import config_definitions as cfg
from swe_tf import fields
from swe_tf.configs import limits
from swe_tf.methods import bindings
from swe_tf.methods import catalog
from swe_tf.methods import choose
from swe_tf.methods import recipes

# Section 5.1: the peak is reached at step 10k, of both 0.5M and 1M.
_WARMUP_STEPS = 10_000
# A shorter run warms up for the same fraction as 10k of 0.5M.
_WARMUP_FRACTION = 0.02


@dataclasses.dataclass
class CheckedExperimentConfig(cfg.ExperimentConfig):
  """An experiment that rejects wrong overrides, under any driver."""

  def override(self, override_params, is_strict=True):
    """See base class; strict overrides must match the names and types.

    Raises:
      UsageError: If a parameter does not exist, or its value is not allowed.
    """
    if is_strict:
      if hasattr(override_params, "as_dict"):
        override_params = override_params.as_dict()
      override_params = fields.conform(self, override_params)
    super().override(override_params, is_strict)


@dataclasses.dataclass
class SharingExperimentConfig(CheckedExperimentConfig):
  """An experiment with `task.sharing` whose schedules follow `train_steps`."""

  def validate(self):
    """Fills in what gin, a recipe and `train_steps` set; checks everything."""
    super().validate()
    bindings.set_fields(self.task)
    recipes.apply(self.task.sharing, catalog.resolve(self).num_layers)
    follow_train_steps(self)
    bindings.record(self.task.sharing)
    limits.check(self)
    choose.check(self)


def follow_train_steps(config: cfg.ExperimentConfig) -> None:
  """Sets decay and warm-up from `trainer.train_steps` where they are unset.

  Model Garden's decay starts at step 0, so its warm-up ends below the peak.
  Here the decay starts where the warm-up ends, at the peak.

  Args:
    config: The experiment; changed in place.
  """
  steps = config.trainer.train_steps
  optimizer_config = config.trainer.optimizer_config
  warmup = optimizer_config.warmup.get()
  if warmup is not None and warmup.warmup_steps is None:
    fraction = round(_WARMUP_FRACTION * steps)
    warmup.warmup_steps = max(0, min(_WARMUP_STEPS, fraction))
  decay = optimizer_config.learning_rate.get()
  if getattr(decay, "decay_steps", 0) is not None:
    return  # Set by hand, or a schedule without an end.
  if not decay.offset and warmup is not None:
    decay.offset = warmup.warmup_steps
  if decay.offset >= steps:
    # Not an error: a trial of a few steps may end within the warm-up.
    logging.warning(
      "The learning rate never decays: the warm-up takes %d steps, and "
      "trainer.train_steps is %d.",
      decay.offset,
      steps,
    )
  decay.decay_steps = max(1, steps - decay.offset)
