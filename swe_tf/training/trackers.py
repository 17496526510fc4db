"""The scalars of a run for Weights & Biases or MLflow, beside TensorBoard's.

A tracker is a function that takes scalars and their step. Where they go (a
server, or a directory when offline) is set by the environment variables of the
service: WANDB_MODE, WANDB_PROJECT, MLFLOW_TRACKING_URI. A resumed run continues
its curves.
"""

from collections.abc import Callable, Mapping
import contextlib
import functools
import hashlib
import importlib
import os
from typing import Any

import numpy as np

from swe_tf import errors
from swe_tf import files

Log = Callable[[Mapping[str, float], int], Any]


def _wandb(wandb: Any, model_dir: str, config: Mapping[str, Any]):
  # The same directory is the same run, after a restart as well.
  run = wandb.init(
    id=hashlib.sha256(model_dir.encode()).hexdigest()[:16],
    name=model_dir,
    config=config,
    resume="allow",
    project=os.environ.get("WANDB_PROJECT", "swe_tf"),
    settings=wandb.Settings(silent=True),
  )
  return lambda values, step: run.log(dict(values), step=step), run.finish


def _mlflow(mlflow: Any, model_dir: str, config: Mapping[str, Any]):
  note = files.as_path(model_dir) / "mlflow_run.txt"
  known = files.read_text(note).strip() if note.exists() else None
  run = mlflow.start_run(run_id=known, run_name=None if known else model_dir)
  if not known:
    files.write_text(note, run.info.run_id + "\n")
    mlflow.log_dict(dict(config), "params.yaml")
  log = lambda values, step: mlflow.log_metrics(dict(values), step=step)
  return log, mlflow.end_run


KINDS = {"wandb": _wandb, "mlflow": _mlflow}


def load(kind: str) -> Any:
  try:
    return importlib.import_module(kind)
  except ImportError as error:
    raise errors.UsageError(
      f"tracker {kind}: not installed; pip install '.[{kind}]' in the clone."
    ) from error


class Tracker(contextlib.AbstractContextManager["Tracker"]):
  """Logs what Orbit's actions are given, under TensorBoard's names."""

  def __init__(self, kind: str, model_dir: str, config: Mapping[str, Any]):
    # A run that cannot start leaves nothing behind: it begins with a scalar.
    self._begin = functools.partial(KINDS[kind], load(kind), model_dir, config)
    self._log: Log | None = None
    self._end: Callable[[], Any] = lambda: None

  def __exit__(self, *unused_exception):
    self._end()

  def action(self, part: str, trainer: Any) -> Callable[[Any], None]:
    """Returns an action for `train` or `validation`."""

    def log(output: Mapping[str, Any]) -> None:
      values = {k: np.asarray(value) for k, value in (output or {}).items()}
      if self._log is None:
        self._log, self._end = self._begin()
      self._log(
        {f"{part}/{k}": float(v) for k, v in values.items() if v.ndim == 0},
        int(trainer.global_step.numpy()),
      )

    return log
