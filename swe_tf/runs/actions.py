"""Orbit actions of a run that is watched. Imports no TensorFlow by itself."""

from collections.abc import Callable
from typing import Any

# Is called with the steps done, the steps of the run, and what is going on.
Report = Callable[[int, int, str], Any]


class ReportLoss:
  """Reports the step and the loss after each training loop."""

  def __init__(self, trainer, report: Report):
    """Initializes the action.

    Args:
      trainer: A `SharedWeightsTrainer`.
      report: See above.
    """
    self._trainer, self._report = trainer, report

  def __call__(self, output) -> None:
    tau = int(output.get("sharing/untie_step", 0))
    note = f"untied after step {tau}, " if tau else ""
    if self._trainer.phase == "shared":
      note = "shared, "
    self._report(
      int(self._trainer.global_step.numpy()),
      self._trainer.config.trainer.train_steps,
      f"{note}loss {float(output['training_loss']):.3f}",
    )
