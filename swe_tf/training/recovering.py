"""A trainer that goes back to its last checkpoint when a loop goes wrong.

A loss that is not a number (`recovery`) or a data file that cannot be read
(`swe_tf.data.bad_shards`) ends a run with a one-line error. If the config says
so, the loop is undone instead and the run continues past the cause. As long as
all is well, the only cost is a look at the loss of each loop.
"""

from collections.abc import Mapping

from absl import logging
import tensorflow as tf

from swe_tf import errors
from swe_tf.data import bad_shards
from swe_tf.training import recovery as recovery_lib
from swe_tf.training import resumable
from swe_tf.training import saving

_MEND = "Restore the file and run the same command again to resume"
_OR_SKIP = ", or set task.skip_bad_shards=true to train without it"


def _say(message: str) -> None:
  logging.warning(message)
  print(f"WARNING: {message}", flush=True)


class RecoveringTrainer(resumable.ResumableTrainer):
  """A `ResumableTrainer` that can also resume within a run."""

  def __init__(self, config, *args, **kwargs):
    super().__init__(config, *args, **kwargs)
    self._recovery = recovery_lib.Recovery(config.trainer)
    self._skips = getattr(config.task, "skip_bad_shards", False)
    self._bad: dict[str, str] = {}
    # Listed while they exist: a file that has vanished cannot be listed.
    self._train_shards = self._eval_shards = bad_shards.Shards("", None, (), "")
    if kwargs.get("train", True):
      self._train_shards = bad_shards.Shards.of(
        "task.train_data",
        config.task.train_data,
        f"{_MEND}{'' if self._skips else _OR_SKIP}.",
      )
      if self._skips and self.task.logging_dir:
        self._leave_out(bad_shards.read_record(self.task.logging_dir))
    if kwargs.get("evaluate", True):
      self._eval_shards = bad_shards.Shards.of(
        "task.validation_data", config.task.validation_data, f"{_MEND}."
      )

  def train(self, num_steps: tf.Tensor):
    """See base class; redoes what goes wrong, where possible."""
    step = int(self.global_step.numpy())
    until = end = step + int(num_steps)
    while True:
      logs = self._run_until(until)
      step = int(self.global_step.numpy())
      if logs is not None and step == end:
        break
      # After an error the loss is checked as often as before.
      until = min(end, step + self.config.trainer.steps_per_loop)
    self.end_if_asked()
    return logs

  def evaluate(self, num_steps: tf.Tensor):
    """See base class; names a file that cannot be read."""
    with self._eval_shards.named():
      return super().evaluate(num_steps)

  def went_back(self) -> None:
    """Called after a checkpoint was restored in the middle of a run."""

  def check_weights(self) -> None:
    """Raises `Diverged` rather than write a useless checkpoint."""
    name = saving.not_finite(self.model.trainable_variables)
    if name:
      step = int(self.global_step.numpy())
      self._recovery.stop(
        f"{name} is not finite at step {step}", self.task.logging_dir
      )

  def _run_until(self, until: int):
    """Runs a loop and returns its logs; None if it had to be undone."""
    num_steps = until - int(self.global_step.numpy())
    try:
      with self._train_shards.named():
        self.position_input()  # This may have to count records in the files.
        logs = self.run_steps(tf.constant(num_steps, tf.int32))
    except bad_shards.BadShards as error:
      self._go_on_without(error)
      return None
    problem = self._recovery.problem(
      int(self.global_step.numpy()), float(logs["training_loss"]), self.model
    )
    if problem:
      self._go_past(problem)
      return None
    return logs

  def _go_past(self, problem: str) -> None:
    """Goes back to the last checkpoint, then continues with new batches."""
    self._recovery.count(problem, self.task.logging_dir)
    place = self.place
    self._go_back(problem)
    # The input itself is already there; this is for a run that is resumed.
    self._skipped_batches.assign(place - int(self.global_step.numpy()))

  def _go_on_without(self, error: bad_shards.BadShards) -> None:
    """Goes back, then continues with the files that can be read."""
    new = {p: r for p, r in error.reasons.items() if p not in self._bad}
    if not (self._skips and new and self.task.logging_dir):
      raise error
    self._leave_out(new)
    bad_shards.write_record(self.task.logging_dir, self._bad)
    # The update that was under way may be half done.
    self._go_back(f"{', '.join(new)} cannot be read")
    self._input_is_positioned = False

  def _leave_out(self, reasons: Mapping[str, str]) -> None:
    for path, reason in reasons.items():
      _say(f"training without the rest of {path}: {reason}")
    self._bad |= reasons
    self._bad_files = tuple(self._bad)

  def _go_back(self, why: str) -> None:
    """Restores the last checkpoint in the middle of a run.

    Args:
      why: What is wrong, for the message.

    Raises:
      Failed: If there is no checkpoint, or if there are several workers: each
        would have to wait for the chief's.
    """
    self.checkpoint.sync()  # The newest may still be under way.
    model_dir = self.task.logging_dir
    latest = tf.train.latest_checkpoint(model_dir) if model_dir else None
    if latest is None or self.several_workers:
      missing = "there is no checkpoint yet to go back to"
      if latest is not None:
        missing = "several workers cannot go back by themselves"
      raise errors.Failed(f"{why}, and {missing}; run the same command again.")
    with self.strategy.scope():
      self.checkpoint.restore(latest)
    for metric in [*self.train_metrics, self.train_loss]:
      metric.reset_states()
    _say(f"{why}: back to {latest}, step {int(self.global_step.numpy())}.")
    self.went_back()
