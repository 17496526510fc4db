"""Goes back to the last checkpoint if the loss is NaN or explodes.

The fields are those of Model Garden's `trainer`: a loss above
`loss_upper_bound` after `recovery_begin_steps` counts like NaN. At most
`recovery_max_trials` times the run goes back to its last checkpoint and
continues with batches that it has not seen, past those that caused it; then it
stops. With 0 it stops the first time; with -1 the loss is not checked.

Unlike in Model Garden's own recovery, the place in the data is part of the
checkpoint, the phase goes back too, and NaN weights are never saved, so that
there is a checkpoint to go back to. The loss is that of a loop of
`steps_per_loop` steps, which the trainer fetches anyway.
"""

import math
from typing import NoReturn

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.training import saving


class Diverged(errors.Failed):
  """The loss was not finite, or too large, too many times.

  Attributes:
    problem: What is wrong, without the advice.
  """

  def __init__(self, problem: str, advice: str = ""):
    super().__init__(f"{problem}.{advice}")
    self.problem = problem


class Recovery:
  """Decides whether to redo a loop, and counts how many were redone."""

  def __init__(self, config: cfg.TrainerConfig):
    """Initializes the count.

    Args:
      config: Sets when to recover, and how many times.
    """
    self._config = config
    self._trials = 0

  def problem(self, step: int, loss: float, model) -> str | None:
    """Returns what is wrong after a loop that ended at `step`, if anything.

    Args:
      step: The number of updates made.
      loss: The mean over the loop.
      model: The model. Its weights are checked if recovery is enabled: the last
        update of a loop may have spoiled them, which the loss does not show
        yet.
    """
    if self._config.recovery_max_trials < 0:
      return None
    if not math.isfinite(loss):
      return f"the loss is {loss} at step {step}"
    bound = self._config.loss_upper_bound
    if step >= self._config.recovery_begin_steps and loss > bound:
      return (
        f"the loss is {loss:g} at step {step}, above trainer.loss_upper_bound "
        f"({bound:g})"
      )
    if self._config.recovery_max_trials > 0:
      name = saving.not_finite(model.trainable_variables)
      if name:
        return f"{name} is not finite at step {step}"
    return None

  def count(self, problem: str, model_dir: str | None) -> None:
    """Counts a problem.

    Args:
      problem: What is wrong.
      model_dir: Where the checkpoints are.

    Raises:
      Diverged: If it is one too many.
    """
    self._trials += 1
    most = self._config.recovery_max_trials
    if self._trials > most:
      tried = f", after {most} recoveries" if most else ""
      self.stop(f"{problem}{tried}", model_dir)

  def stop(self, problem: str, model_dir: str | None) -> NoReturn:
    """Raises `Diverged`, with what is wrong and what to do."""
    good = f" {saving.last_good(model_dir)}." if model_dir else ""
    most = max(0, self._config.recovery_max_trials)
    raise Diverged(
      problem,
      f"{good} Lower the learning rate or clip gradients, or set "
      f"trainer.recovery_max_trials above {most} to go back to the last "
      "checkpoint and skip the batches that caused it.",
    )
