"""GLUE's metrics, in percent, its prediction files, and the zip of the site.

A prediction file has lines `index<TAB>prediction` with label names; `index` is
the row of the data file, from 0. AX is scored by Matthews' correlation over its
three classes, also known as R3.
"""

from collections.abc import Mapping, Sequence
import math
import re
import warnings
import zipfile

import numpy as np

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks

HEADER = "index\tprediction"

# Answered by the model of another task.
_TRAINED_AS = {"AX": "MNLI", "MNLI-m": "MNLI", "MNLI-mm": "MNLI"}

# Predictions for the tasks that the paper leaves out: the larger class of the
# training set; for STS-B, a regression, the training set's mean.
FILLED = {
  "CoLA": "1",
  "MRPC": "1",
  "RTE": "entailment",
  "STS-B": "2.701",
  "WNLI": "0",
}

# A class id, or a score for STS-B.
Label = int | float


def evaluate(
  task: glue_tasks.GlueTask,
  labels: Sequence[Label] | np.ndarray,
  predictions: Sequence[Label] | np.ndarray,
) -> dict[str, float]:
  """Returns a task's metrics in percent, first the one that selects a run.

  >>> evaluate(glue_tasks.find_task("SST-2"), [0, 1, 1, 0], [0, 1, 0, 0])
  {'accuracy': 75.0}
  """
  # They take a second to import, which reading a file need not wait for.
  from scipy import stats
  from sklearn import metrics

  compute = {
    "accuracy": metrics.accuracy_score,
    # The positive class is 1; F1 is 0 if it never occurs, as in Model Garden.
    "f1": lambda *arrays: metrics.f1_score(*arrays, zero_division=0),
    "matthews_corrcoef": metrics.matthews_corrcoef,
    "pearson": lambda *arrays: stats.pearsonr(*arrays).statistic,
    "spearman": lambda *arrays: stats.spearmanr(*arrays).statistic,
  }
  arrays = np.asarray(labels), np.asarray(predictions)
  if task.is_regression and len(arrays[0]) < 2:  # scipy would raise.
    return dict.fromkeys(task.metrics, math.nan)
  with warnings.catch_warnings():
    # The correlation with a constant is undefined, which shows as NaN.
    warnings.simplefilter("ignore", stats.ConstantInputWarning)
    return {key: 100.0 * float(compute[key](*arrays)) for key in task.metrics}


def format_predictions(
  predictions: Mapping[int, Label], task: glue_tasks.GlueTask
) -> str:
  """Returns the content of a prediction file from labels by row."""
  low, high = glue_tasks.SCORE_RANGE
  lines = [HEADER]
  for index, value in sorted(predictions.items()):
    if not task.is_regression:
      lines.append(f"{index}\t{task.labels[int(value)]}")
    elif math.isfinite(value):
      lines.append(f"{index}\t{min(max(value, low), high):.3f}")
    else:
      raise ValueError(
        f"The score of row {index} is {value}; did training diverge?"
      )
  return "\n".join(lines) + "\n"


def read_predictions(
  path: files.PathLike, task: glue_tasks.GlueTask
) -> dict[int, Label]:
  """Returns the labels in a prediction file by row."""
  lines = files.read_text(path).splitlines()
  if not lines or lines[0] != HEADER:
    raise errors.UsageError(
      f"{path}:1: the header is {lines[0] if lines else ''!r}, not {HEADER!r}."
    )
  predictions: dict[int, Label] = {}
  for number, line in enumerate(lines[1:], start=2):
    index, tab, label = line.partition("\t")
    try:
      if not tab or not re.fullmatch("[0-9]{1,18}", index):
        raise ValueError(
          f"{line!r} is not a row number, a tab and a prediction."
        )
      if int(index) in predictions:
        raise ValueError(f"index {index} occurs twice.")
      predictions[int(index)] = glue_examples.parse_label(label, task)
    except ValueError as error:
      raise errors.UsageError(f"{path}:{number}: {error}") from error
  return predictions


def align(
  glue_file: glue_examples.GlueFile,
  predictions: Mapping[int, Label],
  path: files.PathLike,
) -> tuple[Sequence[Label], Sequence[Label]]:
  """Returns the labels of a data file and the predictions in `path`."""
  examples = glue_file.examples
  rows = {row.index: row.label for row in examples if row.label is not None}
  missing = [index for index in rows if index not in predictions]
  if missing:
    raise errors.UsageError(
      f"{path} has no prediction for {len(missing)} of the {len(rows)} rows "
      f"of {glue_file.path}, such as index {missing[0]}."
    )
  # Predictions for dropped rows are fine: the model may have seen them.
  count = len(rows) + glue_file.dropped
  beyond = [index for index in predictions if index >= count]
  if beyond:
    raise errors.UsageError(
      f"{path} has a prediction for index {beyond[0]}, but {glue_file.path} "
      f"has {count} rows, from 0; do the files belong together?"
    )
  return list(rows.values()), [predictions[index] for index in rows]


def find_predictions(runs: files.PathLike, name: str) -> files.Path | None:
  """Returns the file for one of `glue_tasks.SUBMISSIONS`, if there is one.

  It is RUNS/NAME/predictions.tsv, or RUNS/MNLI/NAME.tsv for those that MNLI's
  model answers; with a `selection.json`, in the subdirectory that it names.
  """
  root = files.as_path(runs)
  places = [(root / name, "predictions.tsv")]
  if name in _TRAINED_AS:
    places.append((root / _TRAINED_AS[name], f"{name}.tsv"))
  for directory, file_name in places:
    selection = directory / "selection.json"
    if selection.exists():
      best = files.read_object(selection, best=str)["best"]
      if not (directory / best).is_dir():
        raise errors.UsageError(
          f'{selection}: "best" is {best!r}, which is not a directory there.'
        )
      directory = directory / best
    if (directory / file_name).exists():
      return directory / file_name
  return None


def collect(runs: files.PathLike) -> tuple[dict[str, str], list[str]]:
  """Returns the eleven files by name, and which of `FILLED` are filled."""
  found = {
    name: find_predictions(runs, name) for name in glue_tasks.SUBMISSIONS
  }
  missing = [name for name in found if not found[name]]
  needed = [name for name in missing if name not in FILLED]
  if needed:
    raise errors.UsageError(
      f"{runs} has no predictions for {', '.join(needed)}; a submission needs "
      "every task that the paper reports. Put them in NAME/predictions.tsv."
    )
  contents = {}
  for name, path in found.items():
    task = glue_tasks.SUBMISSIONS[name]
    rows = task.submissions[name]
    if path is None:
      label = glue_examples.parse_label(FILLED[name], task)
      predictions = dict.fromkeys(range(rows), label)
    else:
      predictions = read_predictions(path, task)
    highest = max(predictions, default=-1)
    if len(predictions) != rows or highest != rows - 1:
      raise errors.UsageError(
        f"{path}: {len(predictions)} predictions up to index {highest}, but "
        f"the test set of {name} has {rows} rows, from 0; predict the whole "
        "test set."
      )
    contents[name] = format_predictions(predictions, task)
  return contents, missing


def write_zip(path: files.PathLike, contents: Mapping[str, str]) -> None:
  """Writes the zip file, complete or not at all, with reproducible bytes."""
  with (
    files.complete_or_absent(path) as scratch,
    zipfile.ZipFile(scratch, "w") as archive,
  ):
    for name, content in sorted(contents.items()):
      # `ZipInfo` has a fixed date, where a name alone would get today's.
      info = zipfile.ZipInfo(f"{name}.tsv")
      archive.writestr(info, content, zipfile.ZIP_DEFLATED)
