"""Orbit actions that report a run's progress. Imports no TensorFlow itself."""

from collections.abc import Callable
from typing import Any

from swe_tf.studies import status as status_lib

# Called with a `status.Status`.
Report = Callable[[status_lib.Status], Any]


class ReportLoss:
  """Reports how far the run is after each training loop.

  It reads only what the trainer has logged anyway.
  """

  def __init__(self, trainer, report: Report):
    """Initializes the action.

    Args:
      trainer: A `SharedWeightsTrainer`.
      report: Progress callback.
    """
    self._trainer, self._report = trainer, report

  def __call__(self, output) -> None:
    config = self._trainer.config
    data = config.task.train_data
    tau = output.get("sharing/untie_step")
    self._report(
      status_lib.Status(
        step=int(self._trainer.global_step.numpy()),
        steps=config.trainer.train_steps,
        phase=self._trainer.phase if "sharing/phase" in output else "",
        untie_step=None if tau is None else int(tau),
        loss=float(output["training_loss"]),
        tokens_per_step=(
          data.global_batch_size * getattr(data, "seq_length", 0)
        ),
      )
    )
