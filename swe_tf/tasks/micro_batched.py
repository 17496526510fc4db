"""Tasks that make an update from several micro-batches: `task.micro_batches`.

The update, the logs and the metrics are those of the whole batch. A loss is a
mean over items, and micro-batches need not have equally many of them: each
contributes its share of the whole batch's loss, and the shares are added up.
Dropout draws new masks for each micro-batch.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from official.core import base_task
from swe_tf.sharing import wrapper
from swe_tf.training import micro_batches


class MicroBatchedTask(base_task.Task):
  """Mix it in before a Model Garden task whose config has `micro_batches`."""

  def train_step(self, inputs, model, optimizer, metrics=None):
    """Makes one update; with one micro-batch it is Model Garden's own step."""
    if self.task_config.micro_batches == 1:
      return super().train_step(inputs, model, optimizer, metrics)
    return self._accumulated_step(inputs, model, optimizer, metrics or [])

  def loss_shares(
    self, labels, outputs, aux_losses, whole_labels
  ) -> dict[str, tf.Tensor]:
    """Returns what a micro-batch adds to each term of the whole batch's loss.

    Here the loss is a mean over sequences, and micro-batches have equally many.

    Args:
      labels: The labels of the micro-batch.
      outputs: The outputs of the model for the micro-batch.
      aux_losses: `model.losses`.
      whole_labels: The labels of this replica's whole batch.

    Returns:
      The shares, by the name of the term.
    """
    del whole_labels
    loss = self.build_losses(
      labels=labels, model_outputs=outputs, aux_losses=aux_losses
    )
    return {self.loss: loss / self.task_config.micro_batches}

  def process_loss(self, metrics, terms: Mapping[str, tf.Tensor]) -> None:
    """Updates metrics of the terms of the whole batch's loss."""
    del metrics, terms  # There are none here.

  def _accumulated_step(
    self, inputs, model: tf_keras.Model, optimizer, metrics
  ) -> dict[str, Any]:
    scaler = wrapper.loss_scaling_of(optimizer)
    wrapped = wrapper.find_wrapper(optimizer)
    variables = model.trainable_variables
    _, whole_labels = _features_and_labels(inputs)
    accumulated: list[tf.Variable] = []

    def gradients_and_shares(index, part):
      features, labels = _features_and_labels(part)
      with tf.GradientTape() as tape:
        outputs = model(features, training=True)
        shares = self.loss_shares(labels, outputs, model.losses, whole_labels)
        loss = tf.add_n(list(shares.values()))
        # As in Model Garden, where only masked LM leaves it to the config.
        if getattr(self.task_config, "scale_loss", True):
          loss /= tf.distribute.get_strategy().num_replicas_in_sync
        if scaler is not None:
          loss = scaler.get_scaled_loss(loss)
      pairs = list(zip(tape.gradient(loss, variables), variables))
      self.process_metrics(metrics, labels, outputs)
      if wrapped is not None:
        pairs = list(wrapped.summands(pairs, index))
      accumulated[:] = [v for _, v in pairs]
      return [_with_shape_of(v, g) for g, v in pairs], shares

    grads, terms = micro_batches.sum_over(
      gradients_and_shares, inputs, self.task_config.micro_batches
    )
    if scaler is not None:
      grads = scaler.get_unscaled_gradients(grads)
    optimizer.apply_gradients(list(zip(grads, accumulated)))
    self.process_loss(metrics, terms)
    return {self.loss: tf.add_n(list(terms.values()))}


def _features_and_labels(inputs):
  """Splits a batch into features and labels, as Model Garden does."""
  if isinstance(inputs, tuple) and len(inputs) == 2:
    return inputs
  return inputs, inputs


def _with_shape_of(variable: tf.Variable, grad):
  """Sets the shape; inferring it fails without a static batch size."""
  if isinstance(grad, tf.Tensor):
    grad.set_shape(variable.shape)
  return grad
