"""What to do when the loss is NaN or explodes: undo the loop, or stop.

The fields are those of Model Garden's `trainer`. At most `recovery_max_trials`
times the run goes back to its last checkpoint and continues with batches that
it has not seen; then it stops in one line. With -1 the loss is not checked.

Unlike in Model Garden's own recovery, the position in the data is part of the
checkpoint, the phase goes back too, and NaN weights are never saved, so that
there is a checkpoint to go back to. As long as all is well, the only cost is a
look at the loss of each loop, which the trainer fetches anyway.
"""

import math
from typing import NoReturn

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.training import checkpoint


class Diverged(errors.Failed):
  """The loss was not finite, or too large, too many times."""

  def __init__(self, problem: str, advice: str = ""):
    super().__init__(f"{problem}.{advice}")
    self.problem = problem  # Without the advice.


class Recovery:
  """Decides whether a loop has to be undone, and counts how many were."""

  def __init__(self, config: cfg.TrainerConfig, model_dir: str | None):
    self._config = config
    self._model_dir = model_dir
    self._trials = 0

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
