"""The trainer: runs one phase after another, each as its own compiled loop.

`train(num_steps)` is cut where a phase may end, whatever `steps_per_loop` is,
so that an unshared step is the stock step with nothing added. The trainer knows
phases, never gradients. It is made of parts that know nothing of each other:
`phases` (what a step is), `resume` (where the input is), `recovery` (when to
undo a loop), `checkpoint` (how to save and restore), `interruption` (signals).
"""

from collections.abc import Callable, Mapping
import time
from typing import Any
import weakref

import gin
import tensorflow as tf

from official.core import base_trainer
from swe_tf import errors
from swe_tf import messages
from swe_tf.data import bad_shards
from swe_tf.modeling import registry
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.sharing import wrapper
from swe_tf.training import checkpoint as checkpoint_lib
from swe_tf.training import identity
from swe_tf.training import interruption
from swe_tf.training import layer_curves
from swe_tf.training import micro_batches
from swe_tf.training import phases as phases_lib
from swe_tf.training import recovery as recovery_lib
from swe_tf.training import resume

NO_METHOD = (
  "nothing is shared: this task has no task.sharing. Add "
  "--gin_file=gin/stock.gin (docs/encoders.md), or for bert/pretraining use "
  "swe/bert_pretraining with the same files"
)


def _what_is_shared(
  config: Any, optimizer: Any, phases: phases_lib.Phases, sharing: Any
) -> str:
  """Returns a line on what is shared and until when, or why nothing is."""
  found, steps = wrapper.find_wrapper(optimizer), config.trainer.train_steps
  if isinstance(found, optimizer_lib.SharedWeightsOptimizer):
    tau, first = found.untie_step, phases.next_decision(0)
    until = "its rule unties them" if tau is None else f"step {tau} of {steps}"
    if tau and first and first < tau:  # A stage, or more loops.
      until += f", and change at step {first}"
    units, every = f"{found.plan}, {found.loops}", f", {found.plan.num_units}"
    units = f"{units} loops".removesuffix(f"{every} loops")
    return f"blocks share weights as {units} until {until}"
  if sharing and sharing["mode"] == "swe":
    names = "untie_step", "untie_fraction", "unit_size"
    given = ", ".join(f"{name}={sharing[name]}" for name in names)
    return f"nothing is shared: {given} tie no layers in {steps} steps"
  if sharing is not None or hasattr(config.task, "data_dir"):
    return "nothing is shared"
  return NO_METHOD


@gin.configurable
class SharedWeightsTrainer(base_trainer.Trainer):
  """Trains a task by the method that its config chooses.

  A task with `apply_method`, such as the pre-training tasks of `swe_tf.tasks`,
  chooses the method. Any other is trained by `method`, if there is one, and
  otherwise as in stock Model Garden. In any case a run resumes with weights,
  slots and phase, recovers from NaN, and names bad files; if the task's input
  takes a `start_step`, it resumes as if it had never been interrupted.
  """

  _checkpoint: tf.train.Checkpoint  # The base class makes both.
  _train_iter: Any

  def __init__(
    self,
    config,
    task,
    model,
    optimizer,
    *,
    train: bool = True,
    evaluate: bool = True,
    train_dataset=None,
    validation_dataset=None,
    checkpoint_exporter=None,
    untie_rule: schedule.UntieRule | None = None,
    method: Callable[[phases_lib.Ingredients], phases_lib.Training]
    | None = None,
    accept_changes: bool = False,
  ):
    """Initializes the trainer; see the base class for the other arguments.

    All are named, so that gin refuses any other.

    Args:
      optimizer: The bare optimizer that the task made.
      train_dataset: Made by the task by default; else already at its position.
      untie_rule: When to untie, instead of `task.sharing.untie_*`. Bind it in
        gin: `SharedWeightsTrainer.untie_rule = @MyRule()`.
      method: How to train a task that has no `apply_method`. Bind it in
        gin: `SharedWeightsTrainer.method = @share_blocks`.
      accept_changes: Whether to continue from checkpoints of a run that had
        another config or other data; see `identity`.
    """
    model_dir = task.logging_dir
    strategy = tf.distribute.get_strategy()
    if model_dir and strategy.extended.should_checkpoint:
      # Before a checkpoint manager trusts what it finds there.
      best = config.trainer.best_checkpoint_export_subdir
      for directory in [model_dir, *([f"{model_dir}/{best}"] if best else [])]:
        checkpoint_lib.mend_state(directory, write=train)
    if train:
      micro_batches.check(config.task, strategy.num_replicas_in_sync)
    if not model.built and getattr(model, "inputs", None):
      # Stock BertPretrainerV2 makes its head with the first batch: until then
      # a checkpoint would not fit, and an EMA would leave the head out.
      model(model.inputs)
    bound = {"untie_rule": untie_rule and type(untie_rule).__name__}
    described: Mapping[str, Any] = {}
    sharing: Mapping[str, Any] | None = None
    if hasattr(task, "apply_method"):
      if method is not None:
        raise errors.UsageError(
          "gin binds SharedWeightsTrainer.method, which is for tasks that have "
          f"none, but {type(task).__name__} has task.sharing; unbind it."
        )
      method = task.apply_method
    elif method is not None:
      bound["method"] = getattr(method, "__name__", type(method).__name__)
    phases: phases_lib.Phases = phases_lib.OnePhase(None)
    # The base class reads `model`: its checkpoint is to have the task's own.
    self._phases = phases
    self._unit_size: int | None = None  # Without a method, no curves.
    if method is not None:
      parts: dict[str, Any] = dict(task=task, model=model, optimizer=optimizer)
      training = method(
        phases_lib.Ingredients(config=config, untie_rule=untie_rule, **parts)
      )
      phases, described = training.phases, training.described
      optimizer = wrapper.stack_optimizers(training.optimizer, config)
      sharing = (config.task.as_dict() | described).get("sharing") or {}
      self._unit_size = sharing.get("unit_size", 1)
    if train:
      messages.say(_what_is_shared(config, optimizer, phases, sharing))
    super().__init__(
      config,
      task,
      model,
      optimizer,
      train=train,
      evaluate=evaluate,
      train_dataset=train_dataset,
      validation_dataset=validation_dataset,
      checkpoint_exporter=checkpoint_exporter,
    )
    self._phases = phases
    self._loop_fn: Callable[..., Any] | None = None
    self._evaluated_model = lambda: None
    self._input = resume.InputPosition(self, is_set=train_dataset is not None)
    self._recovery = recovery_lib.Recovery(config.trainer, model_dir)
    # Listed while all files exist.
    self._shards = {
      name: bad_shards.Shards.of(name, getattr(config.task, name))
      for name, is_read in (
        ("train_data", train),
        ("validation_data", evaluate),
      )
      if is_read
    }
    # A model that grows is trained before the task's own.
    models = [m for m in (model, phases.model) if m is not None]
    seed = getattr(task.task_config, "seed", 0)
    dropout = resume.dropout_generators(models, seed)
    resumed: dict[str, Any] = {"dropout": dropout} if dropout else {}
    if train:  # An evaluation may have other data.
      run = identity.Identity(
        config,
        data=identity.fingerprints(self._shards),
        workers=identity.workers(strategy),
        # AdamW clips on each of them.
        replicas=strategy.num_replicas_in_sync,
        gin=bound,
        described=described,
      )
      resumed |= dict(
        identity=run,
        check_run=lambda path: run.check(path, model_dir, accept_changes),
        needs_optimizer=True,
      )
    # The base class's, with what resuming takes besides.
    self._checkpoint = checkpoint_lib.CheckedCheckpoint(
      check=lambda: self._recovery.check_weights(self._step, self.model),
      skipped_batches=self._input.skipped_batches,
      **dict(self._checkpoint._trackable_children()),  # pylint: disable=protected-access
      **resumed,
      **phases.state,
    )

  @property
  def _step(self) -> int:
    return int(self.global_step.numpy())

  @property
  def phase(self) -> str:
    is_shared = self._phases.is_shared
    return optimizer_lib.SHARED if is_shared else optimizer_lib.UNSHARED

  @property
  def model(self):
    """The model that is currently trained and evaluated."""
    now = self._phases.model
    return super().model if now is None else now

  @property
  def several_workers(self) -> bool:
    return isinstance(self.strategy, tf.distribute.MultiWorkerMirroredStrategy)

  def initialize(self):
    """Begins a run for which the checkpoint manager found no checkpoint."""
    model_dir = self.task.logging_dir
    if model_dir and not self.strategy.extended.should_checkpoint:
      # Model Garden gives the manager of a worker that is not the chief an
      # empty directory: after a restart only the chief would resume. The chief
      # may still be about to mend the list of checkpoints.
      latest = checkpoint_lib.latest(model_dir)
      if latest:
        self.checkpoint.restore(latest)
        return
    super().initialize()
    self._phases.begin()

  def train(self, num_steps: tf.Tensor):
    """See base class; undoes and repeats a loop whose loss is bad."""
    until = end = self._step + int(num_steps)
    while True:
      with self._shards["train_data"].named():
        if self._input.seek():  # It may have to count records in the files.
          self._shards["train_data"].require_all()
        logs = self._run_until(until)
      problem = self._recovery.problem(
        self._step, float(logs["training_loss"]), self.model
      )
      if problem:
        batches = self._input.batches_taken
        self._roll_back(problem)
        # The input itself is already there: this is for the checkpoint.
        self._input.keep(batches)
      elif self._step == end:
        break
      # After an error the loss is checked as often as before.
      until = min(end, self._step + self.config.trainer.steps_per_loop)
    interruption.exit_if_requested(self)
    return logs

  def _run_until(self, end: int):
    """Runs steps up to `end`, changing the phase where due; returns logs."""
    self.train_loop_begin()
    while (step := self._step) < end:
      # Before the step, not after it: a run that is resumed exactly at tau
      # comes here with the decision still to be made.
      self._change_phase_if_due(step)
      stop = self._phases.next_decision(step)
      self._run_phase(step, end if stop is None else min(stop, end))
    self._change_phase_if_due(end)
    return self.train_loop_end()

  def _run_phase(self, step: int, end: int) -> None:
    """Runs steps of one phase; compiles and times the first separately."""
    if self._train_iter is None:
      self._train_iter = tf.nest.map_structure(iter, self.train_dataset)
    if self._loop_fn is None:
      start = time.time()
      with messages.during(f"{self._phases.name}: compiling"):
        self._loop_fn = self.create_train_loop_fn()
        self._loop_fn(self._train_iter, tf.constant(1, tf.int32))
        _ = self._step  # Waits for the step.
      self.checkpoint.track_new_variables()  # The first step makes slots.
      messages.say(
        f"{self._phases.name}: compiled and made the first step in "
        f"{time.time() - start:.1f} s"
      )
      step += 1
    if step < end:
      steps = f"{self._phases.name}: steps {step + 1:,} to {end:,}"
      with messages.during(steps, announce=False, again=True):
        self._loop_fn(self._train_iter, tf.constant(end - step, tf.int32))

  def _change_phase_if_due(self, step: int) -> None:
    start = time.time()
    if self._phases.next_decision(step - 1) == step:
      self.checkpoint.sync()  # One under way must not see new variables.
    done = self._phases.change_if_due(step)
    if done:
      self._recompile()
      self.checkpoint.track_new_variables()
      messages.say(
        f"{done} ({time.time() - start:.2f} s to copy weights and slots)"
      )

  def _recompile(self) -> None:
    self._loop_fn = None
    self._forget_other_models()

  def _roll_back(self, why: str) -> None:
    """Restores the last checkpoint in the middle of a run, if possible."""
    self.checkpoint.sync()  # The newest may still be under way.
    model_dir = self.task.logging_dir
    latest = checkpoint_lib.latest(model_dir) if model_dir else None
    if latest is None or self.several_workers:
      missing = "there is no checkpoint yet to go back to"
      if latest is not None:  # Each would have to wait for the chief's.
        missing = "several workers cannot go back by themselves"
      raise errors.Failed(f"{why}, and {missing}; run the same command again.")
    with self.strategy.scope():
      self.checkpoint.restore(latest)
    for metric in [*self.train_metrics, self.train_loss]:
      metric.reset_states()
    messages.warn(f"{why}: back to {latest}, step {self._step}.")
    self._phases.on_rollback()
    self._recompile()  # An earlier phase may be another program.

  def train_loop_end(self):
    """See base class; adds the curves that show the method at work."""
    logs = super().train_loop_end()
    logs.update(self._phases.logs())
    if self._unit_size and tf.summary.should_record_summaries():
      layers = registry.blocks_of(self.model)
      layer_curves.write(layers, self._unit_size, self._step)
    return logs

  def evaluate(self, num_steps: tf.Tensor):
    """See base class; compiles again if the model has changed."""
    self._forget_other_models()
    self._evaluated_model = weakref.ref(self.model)
    with self._shards["validation_data"].named():
      return super().evaluate(num_steps)

  def eval_end(self, aggregated_logs=None):
    """See base class; logs which model it was, if there are several."""
    logs = super().eval_end(aggregated_logs)
    logs.update(self._phases.eval_logs())
    return logs

  def _forget_other_models(self) -> None:
    if self._evaluated_model() is not self.model:
      self._eval_loop_fn = None
