"""Masked language modelling with shared block weights.

A thin layer over Model Garden's task: the same model, loss and metrics.
"""

import dataclasses
import functools
import types

import tensorflow as tf

from official.core import task_factory
from official.nlp.configs import bert
from official.nlp.tasks import masked_lm
from swe_tf import errors
from swe_tf import messages
from swe_tf.data import checks
from swe_tf.data import loaders
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry
from swe_tf.sharing import wrapper
from swe_tf.tasks import mixins


@dataclasses.dataclass
class SharedMaskedLMConfig(mixins.TaskConfig, masked_lm.MaskedLMConfig):
  """Model Garden's config, with the choice of a method."""

  # So that a `params.yaml` can be read back; see `finetuning.default_encoder`.
  model: bert.PretrainerConfig = dataclasses.field(
    default_factory=lambda: bert.PretrainerConfig(
      encoder=registry.bert({}).config
    )
  )
  sharing: config_lib.SharingConfig = dataclasses.field(
    default_factory=config_lib.SharingConfig
  )
  growth: config_lib.GrowthConfig = dataclasses.field(
    default_factory=config_lib.GrowthConfig
  )


@task_factory.register_task_cls(SharedMaskedLMConfig)
class SharedMaskedLMTask(
  mixins.SharingTask, mixins.MicroBatchedTask, masked_lm.MaskedLMTask
):
  """Model Garden's masked LM task, with sharing, resumable input, real fp16."""

  def __init__(self, params, logging_dir=None, name=None, **kwargs):
    """See base class; a task that will be run checks its data at once.

    A later check would come after the model is built, which takes time, and
    inside gin, which adds lines of its own to errors.
    """
    super().__init__(params, logging_dir, name, **kwargs)
    if logging_dir:
      for warning in self.check_data():
        messages.warn(warning)

  def check_data(self) -> list[str]:
    """Returns warnings; raises unless the data is sound and fits the model."""
    encoder = registry.encoder_of(self.task_config.as_dict())
    return checks.check_input(
      self.task_config.train_data,
      self.task_config.validation_data,
      vocab_size=encoder.vocab_size if encoder else None,
    )

  def build_inputs(self, params, input_context=None, start_step: int = 0):
    """Returns the batches from global step `start_step` on."""
    if params.input_path == "dummy":
      return super().build_inputs(params, input_context)
    if not (params.input_path or params.tfds_name):
      name = "train_data" if params.is_training else "validation_data"
      raise errors.UsageError(
        f"task.{name}.input_path is not set; name the files."
      )
    if params.is_training and params.seed is None:
      params = params.replace(seed=self.task_config.seed)
    return loaders.build_dataset(params, input_context, start_step)

  def train_step(self, inputs, model, optimizer, metrics=None):
    """Model Garden's step; under float16, with the loss really scaled."""
    self.require_method(optimizer)
    scaler = wrapper.loss_scaling_of(optimizer)
    if scaler is None or self.task_config.micro_batches > 1:
      return super().train_step(inputs, model, optimizer, metrics)
    with tf.GradientTape() as tape:
      outputs = model(inputs, training=True)
      loss = self.build_losses(
        labels=inputs,
        model_outputs=outputs,
        metrics=metrics,
        aux_losses=model.losses,
      )
      replicas = tf.distribute.get_strategy().num_replicas_in_sync
      share = loss / replicas if self.task_config.scale_loss else loss
      scaled_loss = scaler.get_scaled_loss(share)
    variables = model.trainable_variables
    grads = scaler.get_unscaled_gradients(tape.gradient(scaled_loss, variables))
    optimizer.apply_gradients(list(zip(grads, variables)))
    self.process_metrics(metrics, inputs, outputs)
    return {self.loss: loss}

  def loss_shares(self, labels, outputs, aux_losses, whole_labels):
    """See base class; the loss over words is a mean over predictions."""
    terms: dict[str, tf.Tensor] = {}
    names = ("lm_example_loss", "next_sentence_loss")
    # Model Garden gives each term to a metric while it builds the loss.
    takers = [
      types.SimpleNamespace(
        name=name, update_state=functools.partial(terms.__setitem__, name)
      )
      for name in names
    ]
    self.build_losses(labels, outputs, metrics=takers)
    count = self.task_config.micro_batches
    shares = {name: value / count for name, value in terms.items()}
    shares[names[0]] = terms[names[0]] * tf.math.divide_no_nan(
      tf.reduce_sum(labels["masked_lm_weights"]),
      tf.reduce_sum(whole_labels["masked_lm_weights"]),
    )
    if aux_losses:
      shares["aux_losses"] = tf.add_n(aux_losses) / count
    return shares

  def process_loss(self, metrics, terms) -> None:
    """See base class; Model Garden does this while it builds the loss."""
    for metric in metrics:
      if metric.name in terms:
        metric.update_state(terms[metric.name])
