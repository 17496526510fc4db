"""Model Garden's trainer, resumed as if it had never been interrupted.

After a restart, stock Model Garden starts the data and the dropout masks over,
says little about a checkpoint that does not fit, and restores only the chief
of several workers.
"""

from collections.abc import Iterator, Mapping, Sequence
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
  """Makes dropout layers built in the block keep their state in variables."""
  experimental = tf_keras.backend.experimental
  was_enabled = experimental.is_tf_random_generator_enabled()
  experimental.enable_tf_random_generator()
  try:
    yield
  finally:
    if not was_enabled:
      experimental.disable_tf_random_generator()


def _dropout_generators(
  models: Sequence[tf_keras.Model], seed: int
) -> list[tf.random.Generator]:
  """Seeds and returns the state of the models' dropout, if they keep any."""
  generators = [
    layer._random_generator._generator  # pylint: disable=protected-access
    for layer in dict.fromkeys(
      each for model in models for each in model.submodules
    )
    if isinstance(layer, tf_keras.layers.Dropout)
    and getattr(layer._random_generator, "_generator", None) is not None  # pylint: disable=protected-access
  ]
  for index, generator in enumerate(generators):
    # Keras gives all layers the same key and starts them at most a billion
    # apart, which is a few steps: masks of one layer would recur in others.
    generator.reset_from_key_counter(key=(seed << 32) + index, counter=[0, 0])
  return generators


class ResumableTrainer(base_trainer.Trainer):
  """The stock trainer, with the place in data and dropout in its checkpoint.

  The data of a task resumes where it was if its `build_inputs` takes a
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
    other_models: Sequence[tf_keras.Model] = (),
    **kwargs,
  ):
    """Initializes the trainer.

    Args:
      config: The experiment config.
      task: The task.
      model: The model, built.
      optimizer: The optimizer.
      *args: See the base class.
      state: Other objects to checkpoint, by name.
      other_models: Models that are trained instead of `model` at some time.
      **kwargs: See the base class.
    """
    super().__init__(config, task, model, optimizer, *args, **kwargs)
    self._input_is_positioned = kwargs.get("train_dataset") is not None
    dropout = _dropout_generators(
      [model, *other_models], getattr(task.task_config, "seed", 0)
    )
    self._bad_files: tuple[str, ...] = ()
    # Batches that were taken from the input but not used for an update.
    self._skipped_batches = tf.Variable(
      0,
      dtype=tf.int64,
      trainable=False,
      aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
      name="skipped_batches",
    )
    self._checkpoint = checkpoint_lib.CheckedCheckpoint(
      check=self.check_weights,
      skipped_batches=self._skipped_batches,
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
    """Called before the first update of a run that is not resumed."""

  def _latest_of_chief(self) -> str | None:
    """Returns the checkpoint that a worker other than the chief starts from.

    Model Garden gives the checkpoint manager of such a worker an empty folder:
    after a restart the chief would resume from its checkpoint, and the others
    would start over.
    """
    model_dir = self.task.logging_dir
    if self.strategy.extended.should_checkpoint or not model_dir:
      return None
    return tf.train.latest_checkpoint(model_dir)

  def train(self, num_steps: tf.Tensor):
    """See base class; the first call positions the input."""
    self.position_input()
    logs = self.run_steps(num_steps)
    self.end_if_asked()
    return logs

  def run_steps(self, num_steps: tf.Tensor):
    """Runs the steps and returns the logs."""
    return super().train(num_steps)

  def check_weights(self) -> None:
    """Called before a checkpoint is written; may raise."""

  def end_if_asked(self) -> None:
    """Saves and exits if a signal asked for it.

    Several workers would each save at another step, so they exit without saving
    and resume from the last checkpoint.

    Raises:
      SystemExit: With `interruption.STATUS`.
    """
    if not interruption.requested():
      return
    step, model_dir = int(self.global_step.numpy()), self.task.logging_dir
    if model_dir and not self.several_workers:
      # A manager lists the checkpoints that exist when it is made: one that is
      # still under way would never be listed, nor deleted.
      self.checkpoint.sync()
      tf.train.CheckpointManager(
        self.checkpoint,
        directory=model_dir,
        max_to_keep=self.config.trainer.max_to_keep,
        step_counter=self.global_step,
      ).save(checkpoint_number=step)
      print(
        f"saved a checkpoint at step {step}; run the same command again to "
        "resume from it.",
        flush=True,
      )
    raise SystemExit(interruption.STATUS)

  @property
  def several_workers(self) -> bool:
    return isinstance(self.strategy, tf.distribute.MultiWorkerMirroredStrategy)

  @property
  def place(self) -> int:
    """The number of batches taken from the input since the run began.

    Every step takes one global batch, so this is the step, unless some batches
    were skipped.
    """
    return int(self.global_step.numpy()) + int(self._skipped_batches.numpy())

  def position_input(self) -> None:
    """Starts the input where the restored step left it."""
    if self._input_is_positioned:
      return
    self._input_is_positioned = True
    place, build_inputs = self.place, self.task.build_inputs
    bad = {"bad_files": self._bad_files} if self._bad_files else {}
    takes = inspect.signature(build_inputs).parameters
    if (place or bad) and "start_step" in takes:
      logging.info("Resuming the training input at step %d.", place)
      self.train_dataset = self.distribute_dataset(
        build_inputs, self.config.task.train_data, start_step=place, **bad
      )
