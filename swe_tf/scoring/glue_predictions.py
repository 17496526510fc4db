"""GLUE prediction files: `index<TAB>prediction`, with label names.

This is the format of the GLUE site, for dev and test sets alike. `index` is the
row of the data file, from 0.
"""

from collections.abc import Mapping, Sequence
import math

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks

HEADER = "index\tprediction"

Label = int | float


def format_predictions(
  predictions: Mapping[int, Label], task: glue_tasks.GlueTask
) -> str:
  """Returns the content of a prediction file from class ids by row.

  STS-B has scores, which are clipped to the range of the labels; raises
  `ValueError` if one is not finite.
  """
  low, high = glue_tasks.SCORE_RANGE
  lines = [HEADER]
  for index, value in sorted(predictions.items()):
    if task.is_regression:
      if not math.isfinite(value):
        raise ValueError(
          f"The score of row {index} is {value}; did training diverge?"
        )
      lines.append(f"{index}\t{min(max(value, low), high):.3f}")
    else:
      lines.append(f"{index}\t{task.labels[int(value)]}")
  return "\n".join(lines) + "\n"


def write_predictions(
  path: files.PathLike,
  predictions: Mapping[int, Label],
  task: glue_tasks.GlueTask,
) -> None:
  """Writes a prediction file; see `format_predictions`."""
  files.write_text(path, format_predictions(predictions, task))


def read_predictions(
  path: files.PathLike, task: glue_tasks.GlueTask
) -> dict[int, Label]:
  """Returns the class ids of a prediction file, or scores for STS-B, by row.

  Raises:
    UsageError: If the header is wrong, an index is not a number or occurs
      twice, or a prediction is not one of the labels.
  """
  lines = files.read_text(path).splitlines()
  if not lines or lines[0] != HEADER:
    raise errors.UsageError(
      f"{path}:1: the header is {lines[0] if lines else ''!r}, not {HEADER!r}."
    )
  predictions = {}
  for number, line in enumerate(lines[1:], start=2):
    index, tab, label = line.partition("\t")
    if not tab or not index.isdecimal():
      raise errors.UsageError(
        f"{path}:{number}: {line!r} is not a row number, a tab and a "
        "prediction."
      )
    if int(index) in predictions:
      raise errors.UsageError(f"{path}:{number}: index {index} occurs twice.")
    try:
      predictions[int(index)] = glue_examples.parse_label(label, task)
    except ValueError as error:
      raise errors.UsageError(f"{path}:{number}: {error}") from error
  return predictions


def align(
  glue_file: glue_examples.GlueFile,
  predictions: Mapping[int, Label],
  path: files.PathLike,
) -> tuple[Sequence[Label], Sequence[Label]]:
  """Returns the labels of a data file and the predictions for the same rows.

  Predictions for rows that were dropped are not scored. Errors name `path`.

  Raises:
    UsageError: If a row has no prediction, or a prediction has no row.
  """
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
