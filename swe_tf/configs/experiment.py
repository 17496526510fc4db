"""Experiment configs that are completed and checked before anything runs.

Model Garden's drivers call `validate()` once, after all overrides and before
they touch `model_dir`: an error there leaves nothing on disk.
"""

import dataclasses

from absl import logging

from official.core import config_definitions as cfg
from official.modeling import tf_utils
from swe_tf import errors
from swe_tf.configs import consistency
from swe_tf.configs import describe
from swe_tf.configs import fields
from swe_tf.methods import bindings
from swe_tf.methods import choose
from swe_tf.methods import recipes
from swe_tf.modeling import activations  # noqa: F401 (makes its name known)
from swe_tf.modeling import registry
from swe_tf.training import micro_batches

# Section 5.1: the peak is reached at step 10k, of both 0.5M and 1M.
_WARMUP_STEPS = 10_000
# A shorter run warms up for the same fraction as 10k of 0.5M.
_WARMUP_FRACTION = 0.02

_ACTIVATIONS = ("gelu", "relu", "swish", "tanh", "elu", "selu", "sigmoid")


@dataclasses.dataclass
class CheckedExperimentConfig(cfg.ExperimentConfig):
  """An experiment that rejects wrong overrides, under any driver.

  Model Garden accepts any type of value, and any name in a list of tables.
  """

  def override(self, override_params, is_strict=True):
    """See base class; strict overrides must match the names and types.

    Raises:
      UsageError: If a parameter does not exist, or its value is not allowed.
    """
    if is_strict:
      if hasattr(override_params, "as_dict"):
        override_params = override_params.as_dict()
      override_params = fields.tidy(describe.shape_of(self), override_params)
    super().override(override_params, is_strict)


@dataclasses.dataclass
class SharingExperimentConfig(CheckedExperimentConfig):
  """An experiment with `task.sharing` whose schedules follow `train_steps`."""

  def validate(self):
    """Fills in what follows from `train_steps`, then checks everything."""
    super().validate()
    check_train_steps(self)
    check_micro_batches(self)
    bindings.set_fields(self.task)
    recipes.apply(self.task.sharing, choose.choice_of(self).num_layers)
    follow_train_steps(self)
    bindings.record(self.task.sharing)
    consistency.check(self.as_dict())
    check_activations(self.task)
    choose.check(self)


def check_activations(task: cfg.TaskConfig) -> None:
  """Raises `UsageError` unless Keras knows the activations of the model."""
  encoder = registry.encoder_of(task.as_dict())
  params = encoder.params if encoder is not None else {}
  for name, value in (
    ("the encoder's hidden_activation", params.get("hidden_activation")),
    ("task.model.mlm_activation", getattr(task.model, "mlm_activation", None)),
  ):
    try:
      tf_utils.get_activation(value)
    except (TypeError, ValueError) as error:
      known = "see tf_keras.activations."
      raise errors.UsageError(
        f"{name} ({value!r}) is not known to Keras; "
        + errors.nearest(value, _ACTIVATIONS, known)
      ) from error


def check_train_steps(config: cfg.ExperimentConfig) -> None:
  if config.trainer.train_steps < 1:
    raise errors.UsageError(
      f"trainer.train_steps ({config.trainer.train_steps}) must be at least 1: "
      "the learning rate and the untie step depend on it."
    )


def check_micro_batches(config: cfg.ExperimentConfig) -> None:
  """Raises unless the batch can be split into micro-batches.

  The number of a TPU's replicas is not known yet; the trainer checks again.

  Args:
    config: The experiment.
  """
  micro_batches.check(config.task, max(1, config.runtime.num_gpus))


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
    warmup.warmup_steps = min(_WARMUP_STEPS, round(_WARMUP_FRACTION * steps))
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
