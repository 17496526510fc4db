"""What a resumed run needs besides weights and slots: its input and dropout.

After a restart, stock Model Garden starts the data and the dropout masks over.
Here both continue where they were: their state is in the checkpoint. Only the
input of a task that takes no `start_step`, such as stock's, starts over.
"""

from collections.abc import Iterator, Sequence
import contextlib
import inspect

from absl import logging
import tensorflow as tf
import tf_keras

from official.core import base_trainer
from swe_tf import messages


@contextlib.contextmanager
def dropout_with_state() -> Iterator[None]:
  """Makes dropout layers built in the block keep their state in variables."""
  experimental = tf_keras.backend.experimental
  was_enabled = experimental.is_tf_random_generator_enabled()
  experimental.enable_tf_random_generator()
  try:
    yield
  finally:
    if not was_enabled:
      experimental.disable_tf_random_generator()


def dropout_generators(
  models: Sequence[tf_keras.Model], seed: int
) -> list[tf.random.Generator]:
  """Seeds and returns the state of the models' dropout, if they keep any."""
  layers = dict.fromkeys(each for model in models for each in model.submodules)
  found = [
    getattr(layer._random_generator, "_generator", None)  # pylint: disable=protected-access
    for layer in layers
    if isinstance(layer, tf_keras.layers.Dropout)
  ]
  generators = [generator for generator in found if generator is not None]
  for index, generator in enumerate(generators):
    # Keras gives all layers the same key and starts them at most a billion
    # apart, which is a few steps: masks of one layer would recur in others.
    generator.reset_from_key_counter(key=(seed << 32) + index, counter=[0, 0])
  return generators


class InputPosition:
  """Starts a trainer's input at its step, if the task takes a `start_step`."""

  def __init__(self, trainer: base_trainer.Trainer, is_set: bool):
    self._trainer = trainer
    self.is_set = is_set  # Whether the input is where it should be.
    # Batches taken from the input but not used, for the checkpoint.
    self.skipped_batches = tf.Variable(
      0,
      dtype=tf.int64,
      trainable=False,
      aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
      name="skipped_batches",
    )

  @property
  def batches_taken(self) -> int:
    """The step, as every step takes a global batch, and what was skipped."""
    step = int(self._trainer.global_step.numpy())
    return step + int(self.skipped_batches.numpy())

  def keep(self, batches_taken: int) -> None:
    step = int(self._trainer.global_step.numpy())
    self.skipped_batches.assign(batches_taken - step)

  def seek(self) -> bool:
    """Starts the input where it should be; returns whether it is a new one."""
    if self.is_set:
      return False
    self.is_set = True
    trainer, start = self._trainer, self.batches_taken
    build_inputs = trainer.task.build_inputs
    if not start:
      return False
    if "start_step" not in inspect.signature(build_inputs).parameters:
      messages.warn(
        f"{type(trainer.task).__name__} cannot begin its input at step "
        f"{start}: it starts over, so this run is not the same as one that "
        "was never interrupted."
      )
      return False
    logging.info("Resuming the training input at step %d.", start)
    trainer.train_dataset = trainer.distribute_dataset(
      build_inputs, trainer.config.task.train_data, start_step=start
    )
    return True
