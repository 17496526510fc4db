"""What Model Garden's tasks lack: methods, and micro-batches.

Mix `SharingTask` into any task whose model has repeated blocks;
`swe_tf.methods` does the rest. With `task.micro_batches` the update, the logs
and the metrics are those of the whole batch: each micro-batch contributes its
share of the whole batch's loss, a mean over items of which micro-batches need
not have equally many. Dropout draws new masks for each micro-batch.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tensorflow as tf
import tf_keras

from official.core import base_task
from official.core import config_definitions as cfg
from official.modeling import optimization
from swe_tf import errors
from swe_tf import messages
from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.modeling import checkpoint_files
from swe_tf.sharing import wrapper
from swe_tf.training import checkpoint
from swe_tf.training import micro_batches
from swe_tf.training import phases
from swe_tf.training import resume


@dataclasses.dataclass
class TaskConfig(cfg.TaskConfig):
  """Fields of all our tasks; mix it in before one of Model Garden's configs.

  Attributes:
    seed: Seeds initial weights and dropout; in pre-training also the order of
      the data and its masks, unless `train_data.seed` is set.
    micro_batches: The number of parts into which each replica's batch is cut,
      to make the same update in less memory.
  """

  seed: int = 0
  micro_batches: int = 1


class SeededTask(base_task.Task):
  """A task that always builds the same model from `task_config.seed`."""

  def build_model(self, *args, **kwargs) -> tf_keras.Model:
    """Builds the model with all its variables, and dropout that can resume.

    Model Garden builds the heads on the first batch, when the trainer has
    already copied the variables for EMA.
    """
    # Model Garden builds models with tasks that have no config.
    seed = getattr(self.task_config, "seed", TaskConfig.seed)
    tf_keras.utils.set_random_seed(seed)
    with resume.dropout_with_state():
      model = super().build_model(*args, **kwargs)
      _ = model(model.inputs)
    return model

  def loaded_items(self, model: tf_keras.Model) -> dict[str, Any]:
    """Returns what `init_checkpoint` must have."""
    return model.checkpoint_items

  def initialize(self, model: tf_keras.Model) -> None:
    """Loads `init_checkpoint`, after checking that it fits."""
    path = self.task_config.init_checkpoint
    if path:
      found = checkpoint_files.find(path, "task.init_checkpoint")
      checkpoint.check_fits(found, **self.loaded_items(model))
    with checkpoint.readable(path):
      super().initialize(model)


class SharingTask(SeededTask):
  """A task whose config chooses a method, which the trainer applies."""

  _has_method = False

  def initialize(self, model: tf_keras.Model) -> None:
    """See base class; says which layers of the checkpoint are not used."""
    super().initialize(model)
    sharing, path = self.task_config.sharing, self.task_config.init_checkpoint
    is_tied = sharing.mode in (catalog.SWE, "equal_init")
    if not path or not is_tied or sharing.untie_step == 0:
      return
    for stem, *branches in plans.plan_of(model, sharing).ties:
      value = stem.numpy()
      if any((value != branch.numpy()).any() for branch in branches):
        messages.warn(
          f"the layers of task.init_checkpoint ({path}) differ, but "
          f"task.sharing.mode={sharing.mode} begins with copies of the first "
          f"{sharing.unit_size}: the weights of the others are not used; set "
          "task.sharing.mode=none to keep them."
        )
        return

  def apply_method(self, ingredients: phases.Ingredients) -> phases.Training:
    self._has_method = True
    return catalog.apply(ingredients)

  def require_method(self, optimizer) -> None:
    """Raises if the config chooses a method that was not applied."""
    sharing, growth = self.task_config.sharing, self.task_config.growth
    is_baseline = sharing.mode == growth.method == catalog.NONE
    if not (is_baseline or self._has_method or wrapper.find_wrapper(optimizer)):
      raise errors.UsageError(
        "task.sharing or task.growth is set, but the trainer does not support "
        "it, so nothing would be shared or grow. Run `python -m swe_tf.train`, "
        "or give the stock driver the gin file gin/swe.gin."
      )

  @classmethod
  def create_optimizer(
    cls,
    optimizer_config: optimization.OptimizationConfig,
    runtime_config=None,
    dp_config=None,
  ):
    """Makes the bare optimizer: the trainer adds EMA and loss scaling."""
    del runtime_config
    bare = dataclasses.replace(optimizer_config, ema=None)
    return super().create_optimizer(bare, dp_config=dp_config)


class MicroBatchedTask(SeededTask):
  """Mix it in before a Model Garden task whose config has `micro_batches`."""

  def loss_shares(
    self, labels, outputs, aux_losses, whole_labels
  ) -> dict[str, tf.Tensor]:
    """Returns what a micro-batch adds to each term of the whole batch's loss.

    Here the loss is a mean over sequences, and micro-batches have equally many.
    """
    del whole_labels
    loss = self.build_losses(
      labels=labels, model_outputs=outputs, aux_losses=aux_losses
    )
    return {self.loss: loss / self.task_config.micro_batches}

  def process_loss(self, metrics, terms: Mapping[str, tf.Tensor]) -> None:
    """Updates metrics of the terms of the whole batch's loss: here, none."""

  @tf.autograph.experimental.do_not_convert  # It cannot be, and would warn.
  def train_step(
    self, inputs, model: tf_keras.Model, optimizer, metrics=None
  ) -> dict[str, Any]:
    """Makes one update; with one micro-batch it is Model Garden's own step."""
    if self.task_config.micro_batches == 1:
      return super().train_step(inputs, model, optimizer, metrics)
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
      self.process_metrics(metrics or [], labels, outputs)
      if wrapped is not None:
        pairs = list(wrapped.summands(pairs, index))
      accumulated[:] = [v for _, v in pairs]
      for grad, variable in pairs:
        if isinstance(grad, tf.Tensor):
          # Inferring it fails without a static batch size.
          grad.set_shape(variable.shape)
      return [grad for grad, _ in pairs], shares

    grads, terms = micro_batches.sum_over(
      gradients_and_shares, inputs, self.task_config.micro_batches
    )
    if scaler is not None:
      grads = scaler.get_unscaled_gradients(grads)
    optimizer.apply_gradients(list(zip(grads, accumulated)))
    self.process_loss(metrics or [], terms)
    return {self.loss: tf.add_n(list(terms.values()))}


def _features_and_labels(inputs):
  """Splits a batch into features and labels, as Model Garden does."""
  is_pair = isinstance(inputs, tuple) and len(inputs) == 2
  return inputs if is_pair else (inputs, inputs)
