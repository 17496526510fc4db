"""Model Garden's trainer, resumed as if it had never been interrupted.

Stock Model Garden starts the data and the dropout masks over after a restart,
says little about a checkpoint that does not fit, and restores only the chief
of several workers.
"""

from collections.abc import Iterator, Mapping
import contextlib
import inspect
from typing import Any

from absl import logging
import tensorflow as tf
import tf_keras

from official.core import base_trainer
from swe_tf.training import checkpoint as checkpoint_lib
from swe_tf.training import interruption


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


def _dropout_generators(model: tf_keras.Model, seed: int):
  """Returns the state of the model's dropout, seeded, if it keeps any."""
  # pylint: disable=protected-access
  generators = [
    layer._random_generator._generator
    for layer in model.submodules
    if isinstance(layer, tf_keras.layers.Dropout)
    and getattr(layer._random_generator, "_generator", None) is not None
  ]
  # pylint: enable=protected-access
  for index, generator in enumerate(generators):
    # Keras gives all layers the same key and starts them a billion apart at
    # most, which is a few steps: the masks of one would come again in others.
    generator.reset_from_key_counter(key=(seed << 32) + index, counter=[0, 0])
  return generators


class ResumableTrainer(base_trainer.Trainer):
  """The stock trainer whose checkpoint knows the place in data and dropout.

  The data of a task continues where it was if its `build_inputs` takes a
  `start_step`, dropout if the model was built within `dropout_with_state`.
  """

  _checkpoint: tf.train.Checkpoint  # The base class makes it.

  def __init__(
    self,
    config,
    task,
    model,
    optimizer,
    *args,
    state: Mapping[str, Any] | None = None,
    **kwargs,
  ):
    """Initializes the trainer.

    Args:
      config: The experiment config.
      task: The task.
      model: The model, built.
      optimizer: The optimizer.
      *args: See the base class.
      state: What else the checkpoint has to hold, by name.
      **kwargs: See the base class.
    """
    super().__init__(config, task, model, optimizer, *args, **kwargs)
    self._input_is_positioned = kwargs.get("train_dataset") is not None
    dropout = _dropout_generators(model, getattr(task.task_config, "seed", 0))
    self._checkpoint = checkpoint_lib.CheckedCheckpoint(
      **dict(self._checkpoint._trackable_children()),  # pylint: disable=protected-access
      **({"dropout": dropout} if dropout else {}),
      **(state or {}),
    )

  def initialize(self):
    """Restores a worker that is not the chief, or loads `init_checkpoint`."""
    latest = self._latest_of_chief()
    if latest:
      self.checkpoint.restore(latest)
      return
    super().initialize()
    self.begin()

  def begin(self) -> None:
    """Is called before the first update of a run that is not resumed."""

  def _latest_of_chief(self) -> str | None:
    """Returns what a worker that is not the chief has to start from.

    Model Garden gives the checkpoint manager of such a worker an empty folder:
    after a restart the chief would go on from its checkpoint, and the others
    from the beginning.
    """
    model_dir = self.task.logging_dir
    if self.strategy.extended.should_checkpoint or not model_dir:
      return None
    return tf.train.latest_checkpoint(model_dir)

  def train(self, num_steps: tf.Tensor):
    """See base class; the first call starts the input at its place."""
    self.position_input()
    logs = super().train(num_steps)
    self.end_if_asked()
    return logs

  def end_if_asked(self) -> None:
    """Saves and ends the program if a signal asked for it.

    Of several workers each would save at another step: they end without, and
    go on from the last checkpoint.

    Raises:
      SystemExit: With `interruption.STATUS`.
    """
    if not interruption.requested():
      return
    step, model_dir = int(self.global_step.numpy()), self.task.logging_dir
    several = isinstance(
      self.strategy, tf.distribute.MultiWorkerMirroredStrategy
    )
    if model_dir and not several:
      tf.train.CheckpointManager(
        self.checkpoint,
        directory=model_dir,
        max_to_keep=self.config.trainer.max_to_keep,
        step_counter=self.global_step,
      ).save(checkpoint_number=step)
      print(
        f"saved a checkpoint at step {step}; run the same command again to go "
        "on from it.",
        flush=True,
      )
    raise SystemExit(interruption.STATUS)

  def position_input(self) -> None:
    """Starts the input where the restored step left it.

    Every step takes one global batch, so the step is the position.
    """
    if self._input_is_positioned:
      return
    self._input_is_positioned = True
    step = int(self.global_step.numpy())
    build_inputs = self.task.build_inputs
    if step and "start_step" in inspect.signature(build_inputs).parameters:
      logging.info("Resuming the training input at step %d.", step)
      self.train_dataset = self.distribute_dataset(
        build_inputs, self.config.task.train_data, start_step=step
      )
