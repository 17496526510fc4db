"""How phases follow each other: Model Garden's trainer, cut at the untie step.

One loop is compiled for each phase. `train(num_steps)` is cut where the untie
rule wants to decide, whatever `steps_per_loop` is, so that an unshared step is
the stock step with nothing added. The trainer knows phases, never gradients.
"""

import time
from typing import Optional

from absl import logging
import gin
import tensorflow as tf

from official.core import base_trainer
from swe_tf.sharing import checkpoint as checkpoint_lib
from swe_tf.sharing import diagnostics
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.sharing import stack


def say(message: str) -> None:
  """Tells the user and the log."""
  logging.info(message)
  print(message, flush=True)


@gin.configurable
class SharedWeightsTrainer(base_trainer.Trainer):
  """Trains with block weights shared, unties them, and trains on.

  A task takes part by having `build_sharing_plan(model)`, `untie_rule(config)`
  and `build_inputs(..., start_step=)`; `swe_tf.tasks.sharing.SharingTask` gives
  them. For any other task this is the stock trainer.
  """

  def __init__(
      self,
      config,
      task,
      model,
      optimizer,
      *args,
      untie_rule: Optional[schedule.UntieRule] = None,
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
    self._plan, self._rule, self._sharing = None, None, None
    if hasattr(task, "build_sharing_plan"):
      self._plan = task.build_sharing_plan(model)
      if self._plan is not None:
        self._rule = untie_rule or task.untie_rule(config.trainer.train_steps)
      optimizer = stack.stack_optimizers(
          optimizer,
          wrap=lambda inner: task.wrap_optimizer(
              inner, self._plan, self._rule, config
          ),
          config=config,
      )
      self._sharing = optimizer_lib.find_shared_weights_optimizer(optimizer)
    self._loop_fns = {}
    self._input_is_positioned = kwargs.get("train_dataset") is not None
    super().__init__(config, task, model, optimizer, *args, **kwargs)
    self._checkpoint = checkpoint_lib.CheckedCheckpoint(
        **dict(self._checkpoint._trackable_children())  # pylint: disable=protected-access
    )

  @property
  def phase(self) -> str:
    return self._sharing.phase if self._sharing else optimizer_lib.UNSHARED

  def initialize(self):
    """Loads `init_checkpoint`, then makes the branches equal to their stems."""
    latest = self._latest_of_chief()
    if latest:
      self.checkpoint.restore(latest)
      return
    super().initialize()
    if self.phase == optimizer_lib.SHARED:
      self._plan.tie_weights()

  def _latest_of_chief(self) -> Optional[str]:
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
    """Runs `num_steps` steps, and unties on the way where the rule says so."""
    self._position_input()
    self.train_loop_begin()
    end = int(self.global_step.numpy()) + int(num_steps)
    while (step := int(self.global_step.numpy())) < end:
      # Before the step, not after it: a run that is resumed exactly at tau
      # comes here with the decision still to be made.
      self._untie_if_due(step)
      stop = self._next_decision(step)
      stop = end if stop is None else min(stop, end)
      self._run(stop - step)
    self._untie_if_due(end)
    return self.train_loop_end()

  def train_loop_end(self):
    """See base class; adds the curves that show the method at work."""
    logs = super().train_loop_end()
    if self._sharing is not None:
      logs.update(self._sharing_logs())
    return logs

  def _sharing_logs(self):
    shared = self.phase == optimizer_lib.SHARED
    tau = self._sharing.untied_at
    if tau is None:
      tau = self._sharing.untie_step
    logs = {"sharing/phase": float(not shared)}
    if tau is not None:
      logs["sharing/untie_step"] = float(tau)
    if shared:
      logs["sharing/gradient_cosine"] = self._sharing.gradient_cosine
    else:
      logs["sharing/distance_from_mean"] = diagnostics.distance_from_mean(
          self._plan
      )
    return logs

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
    if self.phase not in self._loop_fns:
      start = time.time()
      self._loop_fns[self.phase] = self.create_train_loop_fn()
      self._loop_fns[self.phase](self._train_iter, tf.constant(1, tf.int32))
      int(self.global_step.numpy())  # Waits for the step.
      if self._sharing is not None:
        say(
            f"{self.phase}: compiled and made the first step in "
            f"{time.time() - start:.1f} s"
        )
      num_steps -= 1
    if num_steps:
      self._loop_fns[self.phase](
          self._train_iter, tf.constant(num_steps, tf.int32)
      )

  def _next_decision(self, step: int) -> Optional[int]:
    if self.phase != optimizer_lib.SHARED:
      return None
    return self._rule.next_decision(step)

  def _untie_if_due(self, step: int) -> None:
    if self.phase != optimizer_lib.SHARED:
      return
    if not self._rule.should_untie(step, self._sharing.gradient_cosine):
      return
    start = time.time()
    self._sharing.untie()
    self._loop_fns.pop(optimizer_lib.SHARED, None)  # Frees the old program.
    say(
        f"untied {self._plan} after step {step} "
        f"({time.time() - start:.2f} s to copy the slots)"
    )
