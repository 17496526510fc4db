"""What to do when a loop of steps goes wrong: undo it, or stop in one line.

Two things can go wrong. The loss is NaN or explodes: the fields are those of
Model Garden's `trainer`. At most `recovery_max_trials` times the run goes back
to its last checkpoint and continues with batches that it has not seen; then it
stops. With -1 the loss is not checked. Or a data file cannot be read: with
`task.skip_bad_shards` the run goes back and continues without it.

Unlike in Model Garden's own recovery, the position in the data is part of the
checkpoint, the phase goes back too, and NaN weights are never saved, so that
there is a checkpoint to go back to. As long as all is well, the only cost is a
look at the loss of each loop, which the trainer fetches anyway.
"""

import math
from typing import NoReturn

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.data import bad_shards
from swe_tf.training import checkpoint

_MEND = "Restore the file and run the same command again to resume"
_OR_SKIP = ", or set task.skip_bad_shards=true to train without it"


class Diverged(errors.Failed):
  """The loss was not finite, or too large, too many times."""

  def __init__(self, problem: str, advice: str = ""):
    super().__init__(f"{problem}.{advice}")
    self.problem = problem  # Without the advice.


class Recovery:
  """Decides whether a loop has to be undone, and counts how many were."""

  def __init__(
    self,
    config: cfg.ExperimentConfig,
    model_dir: str | None,
    *,
    train,
    evaluate,
  ):
    """Initializes the counts, and lists the files while they exist."""
    self._config = config.trainer
    self._model_dir = model_dir
    self._trials = 0
    self._skips = getattr(config.task, "skip_bad_shards", False)
    self._bad: dict[str, str] = {}
    self.train_shards = self.eval_shards = bad_shards.Shards("", None, (), "")
    if train:
      self.train_shards = bad_shards.Shards.of(
        "task.train_data",
        config.task.train_data,
        f"{_MEND}{'' if self._skips else _OR_SKIP}.",
      )
      if self._skips and model_dir:
        self._leave_out(bad_shards.read_record(model_dir))
    if evaluate:
      self.eval_shards = bad_shards.Shards.of(
        "task.validation_data", config.task.validation_data, f"{_MEND}."
      )

  @property
  def shards(self) -> dict[str, bad_shards.Shards]:
    """The files by field; none if a run may do without some of them."""
    if self._skips:
      return {}
    return {
      "train_data": self.train_shards,
      "validation_data": self.eval_shards,
    }

  @property
  def bad_files(self) -> tuple[str, ...]:
    return tuple(self._bad)

  def problem(self, step: int, loss: float, model) -> str | None:
    """Returns what is wrong after a loop; raises if it is one too many."""
    most = self._config.recovery_max_trials
    bound = self._config.loss_upper_bound
    if most < 0:
      return None
    found = None
    if not math.isfinite(loss):
      found = f"the loss is {loss} at step {step}"
    elif step >= self._config.recovery_begin_steps and loss > bound:
      found = (
        f"the loss is {loss:g} at step {step}, above trainer.loss_upper_bound "
        f"({bound:g})"
      )
    elif most > 0:
      # The last update of a loop may have spoiled the weights, which its loss
      # does not show yet.
      name = checkpoint.not_finite(model.trainable_variables)
      found = f"{name} is not finite at step {step}" if name else None
    if found:
      self._trials += 1
      if self._trials > most:
        self._stop(found + (f", after {most} recoveries" if most else ""))
    return found

  def check_weights(self, step: int, model) -> None:
    """Raises `Diverged` rather than let a useless checkpoint be written."""
    name = checkpoint.not_finite(model.trainable_variables)
    if name:
      self._stop(f"{name} is not finite at step {step}")

  def leave_out(self, error: bad_shards.BadShards) -> str:
    """Does without the files, if allowed and of help; returns what is wrong."""
    new = {p: r for p, r in error.reasons.items() if p not in self._bad}
    if not (self._skips and new and self._model_dir):
      raise error
    self._leave_out(new)
    bad_shards.write_record(self._model_dir, self._bad)
    return f"{', '.join(new)} cannot be read"

  def _leave_out(self, reasons: dict[str, str]) -> None:
    for path, reason in reasons.items():
      checkpoint.warn(f"training without the rest of {path}: {reason}")
    self._bad |= reasons

  def _stop(self, problem: str) -> NoReturn:
    model_dir = self._model_dir
    good = f" {checkpoint.last_good(model_dir)}." if model_dir else ""
    most = max(0, self._config.recovery_max_trials)
    raise Diverged(
      problem,
      f"{good} Lower the learning rate or clip gradients, or set "
      f"trainer.recovery_max_trials above {most} to go back to the last "
      "checkpoint and skip the batches that caused it.",
    )
