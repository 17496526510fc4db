"""Model Garden's trainer, resumed as if it had never been interrupted.

Stock Model Garden starts the data and the dropout masks anew after a restart,
so that a sweep that was killed would end in another table.
"""

from collections.abc import Iterator
import contextlib

from absl import logging
import tensorflow as tf
import tf_keras

from official.core import base_trainer


@contextlib.contextmanager
def dropout_with_state() -> Iterator[None]:
  """Makes the dropout layers that are built inside keep state in variables."""
  experimental = tf_keras.backend.experimental
  was_enabled = experimental.is_tf_random_generator_enabled()
  experimental.enable_tf_random_generator()
  try:
    yield
  finally:
    if not was_enabled:
      experimental.disable_tf_random_generator()


class FineTuningTrainer(base_trainer.Trainer):
  """The stock trainer whose checkpoint knows the place in data and dropout.

  The task must have `build_inputs(..., start_step=)`, and the model must be
  built within `dropout_with_state`.
  """

  def __init__(self, config, task, model, optimizer, **kwargs):
    super().__init__(config, task, model, optimizer, **kwargs)
    # pylint: disable=protected-access
    generators = [
      layer._random_generator._generator
      for layer in model.submodules
      if isinstance(layer, tf_keras.layers.Dropout)
    ]
    for index, generator in enumerate(generators):
      # Keras gives all layers the same key and starts them a billion apart at
      # most, which is a few steps: the masks of one would come again in others.
      generator.reset_from_key_counter(
        key=(task.task_config.seed << 32) + index, counter=[0, 0]
      )
    self._checkpoint = tf.train.Checkpoint(
      dropout=generators, **dict(self._checkpoint._trackable_children())
    )
    # pylint: enable=protected-access

  def train(self, num_steps: tf.Tensor):
    """Runs `num_steps` steps; the first call starts the input at its place."""
    step = int(self.global_step.numpy())
    if self._train_iter is None and step:
      logging.info("Resuming the training input at step %d.", step)
      self.train_dataset = self.distribute_dataset(
        self.task.build_inputs, self.config.task.train_data, start_step=step
      )
    return super().train(num_steps)
