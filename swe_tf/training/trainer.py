"""How phases follow each other: Model Garden's trainer, cut at the untie step.

One loop is compiled for each phase. `train(num_steps)` is cut where a phase may
end, whatever `steps_per_loop` is, so that an unshared step is the stock step
with nothing added. The trainer knows phases, never gradients.
"""

import time
import weakref

from absl import logging
import tensorflow as tf

import gin
from official.core import base_trainer
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.training import checkpoint as checkpoint_lib
from swe_tf.training import optimizer_stack as stack


def say(message: str) -> None:
  """Tells the user and the log."""
  logging.info(message)
  print(message, flush=True)


@gin.configurable
class SharedWeightsTrainer(base_trainer.Trainer):
  """Trains with block weights shared, unties them, and trains on.

  A task takes part by having `build_sharing_plan`, `untie_rule`,
  `wrap_optimizer`, `build_phases` and `build_inputs(..., start_step=)`;
  `swe_tf.tasks.sharing.SharingTask` gives them. For any other task this is the
  stock trainer.
  """

  def __init__(
    self,
    config,
    task,
    model,
    optimizer,
    *args,
    untie_rule: schedule.UntieRule | None = None,
    **kwargs,
  ):
    """Initializes the trainer.

    Args:
      config: The experiment config.
      task: The task.
      model: The model, built.
      optimizer: The bare optimizer that the task made.
      *args: See the base class.
      untie_rule: When to untie, instead of `task.sharing.untie_*`. Bind it in
        gin: `SharedWeightsTrainer.untie_rule = @MyRule()`.
      **kwargs: See the base class.
    """
    self._phases, self._sharing = None, None
    if hasattr(task, "build_sharing_plan"):
      plan = task.build_sharing_plan(model)
      rule = untie_rule or task.untie_rule(config.trainer.train_steps)
      optimizer = stack.stack_optimizers(
        optimizer,
        wrap=lambda inner: task.wrap_optimizer(inner, plan, rule, config),
        config=config,
      )
      self._sharing = optimizer_lib.find_shared_weights_optimizer(optimizer)
    self._loop_fn = None
    self._evaluated = lambda: None
    self._input_is_positioned = kwargs.get("train_dataset") is not None
    super().__init__(config, task, model, optimizer, *args, **kwargs)
    if self._sharing is not None:
      self._phases = task.build_phases(model, self._sharing, rule, config)
    self._checkpoint = checkpoint_lib.CheckedCheckpoint(
      **dict(self._checkpoint._trackable_children()),  # pylint: disable=protected-access
      **(self._phases.state if self._phases else {}),
    )

  @property
  def phase(self) -> str:
    return self._sharing.phase if self._sharing else optimizer_lib.UNSHARED

  @property
  def model(self):
    """The model that is trained and evaluated now."""
    now = self._phases.model if self._phases else None
    return super().model if now is None else now

  def initialize(self):
    """Loads `init_checkpoint`, then has the method begin."""
    latest = self._latest_of_chief()
    if latest:
      self.checkpoint.restore(latest)
      return
    super().initialize()
    if self._phases is not None:
      self._phases.begin()

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
    """Runs `num_steps` steps, and changes the phase on the way where due."""
    self._position_input()
    self.train_loop_begin()
    end = int(self.global_step.numpy()) + int(num_steps)
    while (step := int(self.global_step.numpy())) < end:
      # Before the step, not after it: a run that is resumed exactly at tau
      # comes here with the decision still to be made.
      self._change_phase_if_due(step)
      stop = self._phases.next_decision(step) if self._phases else None
      stop = end if stop is None else min(stop, end)
      self._run(stop - step)
    self._change_phase_if_due(end)
    return self.train_loop_end()

  def train_loop_end(self):
    """See base class; adds the curves that show the method at work."""
    logs = super().train_loop_end()
    if self._phases is not None:
      logs.update(self._phases.logs())
    return logs

  def evaluate(self, num_steps: tf.Tensor):
    """See base class; compiles anew when it is another model's turn."""
    self._forget_other_models()
    self._evaluated = weakref.ref(self.model)
    return super().evaluate(num_steps)

  def _forget_other_models(self) -> None:
    """Lets go of the model that was evaluated, unless it is trained now."""
    if self._evaluated() is not self.model:
      self._eval_loop_fn = None

  def _position_input(self):
    """Starts the input where the restored step left it.

    Every step takes one global batch, so the step is the position. Stock Model
    Garden starts the data from the beginning after a restart.
    """
    if self._input_is_positioned:
      return
    self._input_is_positioned = True
    step = int(self.global_step.numpy())
    if step and hasattr(self.task, "build_sharing_plan"):
      logging.info("Resuming the training input at step %d.", step)
      self.train_dataset = self.distribute_dataset(
        self.task.build_inputs, self.config.task.train_data, start_step=step
      )

  def _run(self, num_steps: int) -> None:
    """Makes `num_steps` steps, the first of a phase by itself, timed."""
    if self._train_iter is None:
      self._train_iter = tf.nest.map_structure(iter, self.train_dataset)
    if self._loop_fn is None:
      start = time.time()
      self._loop_fn = self.create_train_loop_fn()
      self._loop_fn(self._train_iter, tf.constant(1, tf.int32))
      int(self.global_step.numpy())  # Waits for the step.
      if self._phases is not None:
        say(
          f"{self._phases.name}: compiled and made the first step in "
          f"{time.time() - start:.1f} s"
        )
      num_steps -= 1
    if num_steps:
      self._loop_fn(self._train_iter, tf.constant(num_steps, tf.int32))

  def _change_phase_if_due(self, step: int) -> None:
    start = time.time()
    done = self._phases.change_if_due(step) if self._phases else None
    if done:
      self._loop_fn = None  # The next step is another program.
      self._forget_other_models()
      say(f"{done} ({time.time() - start:.2f} s to copy weights and slots)")
