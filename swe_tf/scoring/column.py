"""A column of the paper's tables: what one checkpoint scores on all tasks.

The rows come from the directories that `swe finetune` writes, one per task. The
paper reports the development sets of SQuAD and the test sets of GLUE, which
only the benchmark's site can score; `read_dev` reads the development scores of
both. AX has only a test set.
"""

from collections.abc import Mapping

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.scoring import averages

# The tasks fine-tuned for a column, in this order. MNLI's model answers AX.
TASKS = ("squad_v1.1", "squad_v2.0", "MNLI", "QNLI", "QQP", "SST-2")
AX = "AX"
# Where `swe finetune --tasks` writes a column.
FILE_NAME = "column.json"
SQUAD_AVERAGE, GLUE_AVERAGE = "SQuAD average", "GLUE average"
# In the order of the paper's tables.
ROWS = (
  SQUAD_AVERAGE,
  GLUE_AVERAGE,
  *averages.SQUAD_ROWS,
  *averages.GLUE_ROWS,
)
# Rows with a development set beside the test set that the paper reports.
TEST_ROWS = tuple(row for row in averages.GLUE_ROWS if row != AX)

# By task: which score of its `selection.json` each row shows.
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


def read_dev(directory: files.PathLike) -> dict[str, float]:
  """Reads the rows of one task, in percent, as means over seeds.

  Args:
    directory: The task's directory from `swe finetune`, with `selection.json`.

  Returns:
    The scores by row; rows without a score are left out.
  """
  folder = files.as_path(directory)
  selection = files.read_json(folder / "selection.json")
  task, found = selection["task"], selection["scores"]
  scores = {}
  for row, place in _PLACES.get(task, {}).items():
    mean = found.get(place, {}).get("mean")
    if mean is not None:
      scores[row] = mean
  path = folder / selection["best"] / "test_result.json"
  if task == "MNLI" and path.exists():
    for split in files.read_json(path).get("scores", {}).values():
      if split and split.get("matthews_corrcoef") is not None:
        scores[AX] = split["matthews_corrcoef"]
  return scores


def dev_name(row: str) -> str:
  """Returns the name of a row's development score, if that is not the test's.

  >>> dev_name("QNLI"), dev_name("squad_v1.1")
  ('QNLI (dev)', 'squad_v1.1')
  """
  has_test = row in (*TEST_ROWS, GLUE_AVERAGE)
  return f"{row} (dev)" if has_test else row


def with_averages(scores: Mapping[str, float]) -> dict[str, float]:
  """Adds every average whose rows are complete; sorts as in `ROWS`."""
  complete = dict(scores)
  for name, rows, average in (
    (SQUAD_AVERAGE, averages.SQUAD_ROWS, averages.squad_average),
    (GLUE_AVERAGE, averages.GLUE_ROWS, averages.glue_average),
  ):
    if set(rows) <= set(scores):
      complete[name] = average(scores)
  return {row: complete[row] for row in ROWS if row in complete}


def read_site_scores(path: files.PathLike) -> dict[str, dict[str, float]]:
  """Reads the scores that the benchmark's site returned.

  Args:
    path: A YAML file with the scores by row, under the name of a run or of a
      directory of `swe finetune --tasks`, as the report shows it:
      `runs/large_swe: {MNLI-m: 87.4, QNLI: 93.0, ...}`.

  Raises:
    UsageError: If the file holds anything else.
  """
  content = yaml_files.read(path)
  if not isinstance(content, dict):
    raise errors.UsageError(
      f"{path}: it must have scores under the name of each run, such as "
      "`runs/large_swe: {QNLI: 93.0, SST-2: 94.7}`."
    )
  for name, scores in content.items():
    if not isinstance(scores, dict):
      raise errors.UsageError(
        f"{path}: {name} has {scores!r}; give scores, such as {{QNLI: 93.0}}."
      )
    for row, value in scores.items():
      if row not in averages.GLUE_ROWS:
        raise errors.UsageError(
          f"{path}: {name} has a score for {row}; the rows are "
          f"{', '.join(averages.GLUE_ROWS)}."
        )
      # YAML's `yes` is a bool, which Python counts as a number.
      if type(value) not in (int, float) or not -100 <= value <= 100:
        raise errors.UsageError(
          f"{path}: {name}: {row} is {value!r}; scores are in percent, from "
          "-100 to 100."
        )
      # Only a correlation, as of AX, can really be as low as 1%.
      if row != AX and abs(value) <= 1:
        raise errors.UsageError(
          f"{path}: {name}: {row} is {value!r}; scores are in percent: write "
          f"{100 * value:g} for a fraction of {value:g}."
        )
  return {
    str(name): {row: float(value) for row, value in scores.items()}
    for name, scores in content.items()
  }
