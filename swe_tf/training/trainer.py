"""Runs one phase after another, each as its own compiled loop.

`train(num_steps)` is cut where a phase may end, whatever `steps_per_loop` is,
so that an unshared step is the stock step with nothing added. The trainer knows
phases, never gradients.
"""

from collections.abc import Callable
import time
from typing import Any
import weakref

from absl import logging
import gin
import tensorflow as tf

from swe_tf import errors
from swe_tf.modeling import registry
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.training import dashboards
from swe_tf.training import layer_curves
from swe_tf.training import micro_batches
from swe_tf.training import optimizer_stack
from swe_tf.training import phases as phases_lib
from swe_tf.training import recovering


def say(message: str) -> None:
  """Prints and logs a message."""
  logging.info(message)
  print(message, flush=True)


@gin.configurable
class SharedWeightsTrainer(recovering.RecoveringTrainer):
  """Trains a task by the method that its config chooses.

  This takes a `TaskWithMethod`, such as the pre-training tasks of
  `swe_tf.tasks`. Any other task is trained by `method`, if there is one, and
  otherwise as in stock Model Garden, plus what `RecoveringTrainer` adds.
  """

  _train_iter: Any  # The base class makes it.

  def __init__(
    self,
    config,
    task,
    model,
    optimizer,
    *args,
    untie_rule: schedule.UntieRule | None = None,
    method: Callable[[phases_lib.Ingredients], phases_lib.Training]
    | None = None,
    on_new_phase: Callable[["SharedWeightsTrainer", int], Any] | None = None,
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
      method: How to train a task that is not a `TaskWithMethod`. Bind it in
        gin: `SharedWeightsTrainer.method = @share_blocks`.
      on_new_phase: Called with the trainer and the number of updates made,
        between the last update of a phase and the first of the next one. It may
        read the weights, but must not change them.
      **kwargs: See the base class.
    """
    if kwargs.get("train", True):
      replicas = tf.distribute.get_strategy().num_replicas_in_sync
      micro_batches.check(config.task, replicas)
    # Set after the base class is done: its checkpoint has the task's model.
    self._phases: phases_lib.Phases | None = None
    phases = None
    if isinstance(task, phases_lib.TaskWithMethod):
      if method is not None:
        raise errors.UsageError(
          "gin binds SharedWeightsTrainer.method, which is for tasks that have "
          f"none, but {type(task).__name__} has task.sharing; unbind it."
        )
      method = task.apply_method
    if method is not None:
      training = method(
        phases_lib.Ingredients(
          task=task,
          model=model,
          optimizer=optimizer,
          config=config,
          untie_rule=untie_rule,
        )
      )
      phases = training.phases
      kwargs["state"] = phases.state
      if phases.model is not None:
        kwargs["other_models"] = [phases.model]
      optimizer = optimizer_stack.stack_optimizers(training.optimizer, config)
    self._loop_fn: Callable[..., Any] | None = None
    self._evaluated = lambda: None
    self._on_new_phase = on_new_phase or (lambda trainer, step: None)
    super().__init__(config, task, model, optimizer, *args, **kwargs)
    self._phases = phases
    sharing = getattr(task.task_config, "sharing", None)
    self._curves = layer_curves.LayerCurves(getattr(sharing, "unit_size", 1))

  @property
  def phase(self) -> str:
    shared = self._phases is not None and self._phases.is_shared
    return optimizer_lib.SHARED if shared else optimizer_lib.UNSHARED

  @property
  def model(self):
    """The model that is currently trained and evaluated."""
    now = self._phases.model if self._phases else None
    return super().model if now is None else now

  def begin(self) -> None:
    if self._phases is not None:
      self._phases.begin()
      if self.task.logging_dir and self.strategy.extended.should_save_summary:
        dashboards.write_layout(self.task.logging_dir)

  def run_steps(self, num_steps: tf.Tensor):
    """Runs `num_steps` steps, changing the phase where due."""
    phases = self._phases
    if phases is None:
      return super().run_steps(num_steps)
    self.train_loop_begin()
    end = int(self.global_step.numpy()) + int(num_steps)
    while (step := int(self.global_step.numpy())) < end:
      # Before the step, not after it: a run that is resumed exactly at tau
      # comes here with the decision still to be made.
      self._change_phase_if_due(phases, step)
      stop = phases.next_decision(step)
      stop = end if stop is None else min(stop, end)
      self._run(phases, stop - step)
    self._change_phase_if_due(phases, end)
    return self.train_loop_end()

  def went_back(self) -> None:
    """See base class; an earlier phase may need another program."""
    if self._phases is not None:
      self._phases.went_back()
    self._loop_fn = None
    self._forget_other_models()

  def train_loop_end(self):
    """See base class; adds the curves that show the method at work."""
    logs = super().train_loop_end()
    if self._phases is not None:
      logs.update(self._phases.logs())
      if tf.summary.should_record_summaries():
        step = int(self.global_step.numpy())
        self._curves.write(registry.blocks_of(self.model), step)
    return logs

  def evaluate(self, num_steps: tf.Tensor):
    """See base class; compiles again if the model has changed."""
    self._forget_other_models()
    self._evaluated = weakref.ref(self.model)
    return super().evaluate(num_steps)

  def eval_end(self, aggregated_logs=None):
    """See base class; logs which model it was, if there are several."""
    logs = super().eval_end(aggregated_logs)
    if self._phases is not None:
      logs.update(self._phases.eval_logs())
    return logs

  def _forget_other_models(self) -> None:
    """Releases the model that was evaluated last, unless it is the current."""
    if self._evaluated() is not self.model:
      self._eval_loop_fn = None

  def _run(self, phases: phases_lib.Phases, num_steps: int) -> None:
    """Runs `num_steps` steps; times the first of a phase separately."""
    if self._train_iter is None:
      self._train_iter = tf.nest.map_structure(iter, self.train_dataset)
    loop_fn = self._loop_fn
    if loop_fn is None:
      start = time.time()
      self._loop_fn = loop_fn = self.create_train_loop_fn()
      loop_fn(self._train_iter, tf.constant(1, tf.int32))
      int(self.global_step.numpy())  # Waits for the step.
      self.checkpoint.copy_anew()  # The first step makes slots.
      say(
        f"{phases.name}: compiled and made the first step in "
        f"{time.time() - start:.1f} s"
      )
      num_steps -= 1
    if num_steps:
      loop_fn(self._train_iter, tf.constant(num_steps, tf.int32))

  def _change_phase_if_due(self, phases: phases_lib.Phases, step: int) -> None:
    start = time.time()
    if phases.next_decision(step - 1) == step:
      self.checkpoint.sync()  # One under way must not see new variables.
    done = phases.change_if_due(step)
    if done:
      self._loop_fn = None  # The next step is another program.
      self._forget_other_models()
      self.checkpoint.copy_anew()
      say(f"{done} ({time.time() - start:.2f} s to copy weights and slots)")
      self._on_new_phase(self, step)
