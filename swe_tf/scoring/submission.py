"""The zip file to submit to the GLUE site, from the directories of runs.

The files are RUNS/NAME/predictions.tsv for each of the eleven names, or
RUNS/MNLI/NAME.tsv for AX, MNLI-m and MNLI-mm, which one model answers; with a
`selection.json`, from the subdirectory that it calls `best`.
"""

from collections.abc import Mapping
import zipfile

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.scoring import glue

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


def find_predictions(runs: files.PathLike, name: str) -> files.Path | None:
  """Returns the prediction file for one of `glue_tasks.SUBMISSIONS`, if any."""
  root = files.as_path(runs)
  places = [(root / name, "predictions.tsv")]
  if name in _TRAINED_AS:
    places.append((root / _TRAINED_AS[name], f"{name}.tsv"))
  for directory, file_name in places:
    selection = directory / "selection.json"
    if selection.exists():
      content = files.read_json(selection)
      best = content.get("best") if isinstance(content, dict) else None
      if not isinstance(best, str) or not (directory / best).is_dir():
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
      predictions = glue.read_predictions(path, task)
    highest = max(predictions, default=-1)
    if len(predictions) != rows or highest != rows - 1:
      raise errors.UsageError(
        f"{path}: {len(predictions)} predictions up to index {highest}, but "
        f"the test set of {name} has {rows} rows, from 0; predict the whole "
        "test set."
      )
    contents[name] = glue.format_predictions(predictions, task)
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
