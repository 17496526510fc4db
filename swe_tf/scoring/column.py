"""A column of the paper's tables: what one checkpoint scores on all tasks.

The paper reports the development sets of SQuAD and the test sets of GLUE, which
only the benchmark's site can score; AX has only a test set. The paper does not
define its averages, but its printed numbers do. The GLUE average is not the
score of the GLUE site, which has more tasks, and it counts MNLI twice.
"""

from collections.abc import Mapping

from swe_tf import files

AX = "AX"
# Where `swe finetune --tasks` writes a column.
FILE_NAME = "column.json"
SQUAD_AVERAGE, GLUE_AVERAGE = "SQuAD average", "GLUE average"
# The scores are Matthews' correlation for AX, F1 for SQuAD and QQP, and
# accuracy otherwise.
SQUAD_ROWS = ("squad_v1.1", "squad_v2.0")
GLUE_ROWS = (AX, "MNLI-m", "MNLI-mm", "QNLI", "QQP", "SST-2")
# In the order of the paper's tables.
ROWS = (SQUAD_AVERAGE, GLUE_AVERAGE, *SQUAD_ROWS, *GLUE_ROWS)
# Rows with a development set beside the test set that the paper reports.
TEST_ROWS = GLUE_ROWS[1:]

# By task, in the order of fine-tuning: which score of its `selection.json` each
# row shows. MNLI's model answers AX.
_PLACES = {
  "squad_v1.1": {"squad_v1.1": "eval/f1"},
  "squad_v2.0": {"squad_v2.0": "eval/best_f1"},
  "MNLI": {
    "MNLI-m": "dev_matched/accuracy",
    "MNLI-mm": "dev_mismatched/accuracy",
  },
  "QNLI": {"QNLI": "dev/accuracy"},
  "QQP": {"QQP": "dev/f1"},
  "SST-2": {"SST-2": "dev/accuracy"},
}
TASKS = tuple(_PLACES)


def read_dev(directory: files.PathLike) -> dict[str, float]:
  """Reads the rows that a task's directory has: percent, means over seeds."""
  folder = files.as_path(directory)
  selection = files.read_object(
    folder / "selection.json", task=str, scores=dict, best=str
  )
  places = _PLACES.get(selection["task"], {})
  found = {
    row: (selection["scores"].get(place), "mean")
    for row, place in places.items()
  }
  path = folder / selection["best"] / "test_result.json"
  if selection["task"] == "MNLI" and path.exists():
    for split in files.read_object(path, scores=dict)["scores"].values():
      if isinstance(split, dict) and "matthews_corrcoef" in split:
        found[AX] = split, "matthews_corrcoef"
  return {
    row: part[name]
    for row, (part, name) in found.items()
    if isinstance(part, dict) and type(part.get(name)) in (int, float)
  }


def dev_name(row: str) -> str:
  """Returns the name of a row's development score, if there is a test's."""
  return f"{row} (dev)" if row in (*TEST_ROWS, GLUE_AVERAGE) else row


def with_averages(scores: Mapping[str, float]) -> dict[str, float]:
  """Adds every average whose rows are complete; sorts as in `ROWS`.

  >>> with_averages({"squad_v1.1": 92.54, "squad_v2.0": 84.14})["SQuAD average"]
  88.34
  """
  complete = dict(scores)
  for name, rows in ((SQUAD_AVERAGE, SQUAD_ROWS), (GLUE_AVERAGE, GLUE_ROWS)):
    if set(rows) <= set(scores):
      complete[name] = sum(scores[row] for row in rows) / len(rows)
  return {row: complete[row] for row in ROWS if row in complete}
