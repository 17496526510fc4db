"""Runs as frames: one row per run, and all curves in a second, long frame.

A run is a directory with `params.yaml` and event files in `train/` and
`validation/`, as `swe train` and `swe sweep` write it. Everything else in a
report is computed from these two frames.
"""

from collections.abc import Iterator, Sequence
import math
import pathlib
from typing import Any

import pandas as pd

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.analysis import run_config
from swe_tf.analysis import scalars
from swe_tf.methods import catalog

FINISHED, UNFINISHED, DIVERGED = "finished", "unfinished", "diverged"
NOT_EVALUATED, REPEATED = "not evaluated", "repeated seed"
# Columns of scores; fine-tuning adds those of the paper's rows.
LOSS, ACCURACY = "validation_loss", "mlm_accuracy"
_CURVE_COLUMNS = ("run", "curve", "step", "value")
_ENTROPY = "unigram_entropy"  # In study.json.


def directories_with(
  roots: Sequence[files.PathLike], name: str
) -> Iterator[tuple[str, files.Path]]:
  """Yields the name for readers and the path of each directory with a file.

  The name is the path from the root, preceded by the root's own name. Every
  directory is yielded once, even if several roots contain it.
  """
  seen = set()
  for root in map(files.as_path, roots):
    for path in files.directories_with(root, name):
      if path.resolve() not in seen:
        seen.add(path.resolve())
        yield str(pathlib.PurePath(root.name) / path.relative_to(root)), path


def read(
  roots: Sequence[files.PathLike],
) -> tuple[pd.DataFrame, pd.DataFrame]:
  """Reads all pre-training runs under some directories.

  Args:
    roots: The directories.

  Returns:
    The runs: `run`, the name for readers; `path`; what `run_config.describe`
    returns; `step`, the last one that was logged; `status`, where only
    `FINISHED` counts; `flops` and `seconds` of the whole run; `entropy` of
    single tokens, if the study recorded it; `LOSS`, `ACCURACY`.

    The curves: `run`, `curve`, such as `train/training_loss`, `step`, `value`.

  Raises:
    UsageError: If a run cannot be read.
  """
  rows: list[dict[str, Any]] = []
  points: list[tuple[str, str, int, float]] = []
  for name, path in directories_with(roots, "params.yaml"):
    content = yaml_files.read(path / "params.yaml")
    if not run_config.is_pretraining(content):
      continue  # Fine-tuning, or something else.
    try:
      row = run_config.describe(content, _json(path / "run.json").get("axes"))
    except errors.UsageError as error:
      raise errors.UsageError(
        f"{path}/params.yaml: {error} Correct it, or leave the run out."
      ) from error
    curves = scalars.read_run(path)
    rows.append({"run": name, "path": path} | row | _outcome(path, row, curves))
    for tag, curve in curves.items():
      points += [(name, tag, step, value) for step, value in curve]
  return (
    # As objects, so that a missing integer makes no floats of the others.
    pd.DataFrame(rows, dtype=object),
    pd.DataFrame(points, columns=list(_CURVE_COLUMNS)),
  )


def _outcome(
  path: files.Path, row: dict[str, Any], curves: dict[str, scalars.Curve]
) -> dict[str, Any]:
  """Returns how far a run came, and what it measured."""
  result = _json(path / "result.json")
  steps, phases = row["steps"], row["phases"]
  step = max((curve[-1][0] for curve in curves.values() if curve), default=0)
  losses = curves.get("validation/validation_loss", [])
  accuracies = dict(curves.get("validation/masked_lm_accuracy", []))
  loss, accuracy = dict(losses).get(steps), accuracies.get(steps)
  # NaN may end a run at any step: it is a result, not an interruption.
  ends = [
    each[-1][1] for each in (curves.get("train/training_loss"), losses) if each
  ]
  if result.get("status") == DIVERGED or not all(map(math.isfinite, ends)):
    status = DIVERGED
  elif step < steps:
    status = UNFINISHED
  else:
    status = NOT_EVALUATED if loss is None else FINISHED
  is_good = status == FINISHED
  tau, measured = row["untie_step"], curves.get("train/sharing/untie_step")
  if tau is None and measured and row["method"] == catalog.SWE:
    tau = measured[-1][1]
  return {
    "step": step,
    "status": status,
    "untie_step": tau,
    "flops": phases and sum(count * flops for count, flops in phases),
    "seconds": _number(result.get("seconds")),
    "entropy": _number(_json(path.parent / "study.json").get(_ENTROPY)),
    LOSS: loss if is_good else None,
    ACCURACY: 100 * accuracy if is_good and accuracy is not None else None,
  }


def _json(path: files.Path) -> dict[str, Any]:
  content = files.read_json(path) if path.exists() else {}
  return content if isinstance(content, dict) else {}


def _number(value: Any) -> float | None:
  return float(value) if isinstance(value, (int, float)) else None
