"""Turns the results of a task's runs into a choice and a table.

The table has no times or dates, so interrupted fine-tuning ends with the same
table. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
import io
from typing import Any

import pandas as pd
from rich import console as rich_console
from rich import table as rich_table

from swe_tf.scoring import column as column_lib
from swe_tf.studies import study_file

_RATE = "learning_rate"


def make_frame(
  runs: Sequence[study_file.PlannedRun],
  results: Mapping[str, Mapping[str, Any]],
  failures: Mapping[str, str],
) -> pd.DataFrame:
  """Returns a row per run, by name.

  The columns are `learning_rate`, `seed`, `problem` (empty if it finished), and
  `SPLIT/METRIC` in percent, the split that selects first.
  """
  rows = {}
  for run in runs:
    result, seed = results.get(run.name), run.point["seed"]
    row = {"problem": "", **run.point}
    if result is None:
      row["problem"] = f"seed {seed} failed: {failures[run.name]}"
    elif result["status"] != "finished":
      row["problem"] = f"seed {seed} diverged: {result['reason']}"
    else:
      for split, scores in result["scores"].items():
        row |= {f"{split}/{name}": value for name, value in scores.items()}
    rows[run.name] = row
  frame = pd.DataFrame.from_dict(rows, orient="index")
  scores = [name for name in frame if "/" in name]
  return frame.astype(dict.fromkeys(scores, float))  # None becomes NaN.


def choose(frame: pd.DataFrame, metric: str) -> str | None:
  """Selects a learning rate by its mean, and its best run; None without scores.

  An incomplete rate is chosen only if every rate is incomplete, and then from
  those with the most runs: the mean of the runs that happened to survive says
  little. The metric is that of the first split.
  """
  scores = [name for name in frame if name.endswith(f"/{metric}")]
  finished = frame[frame.problem == ""]
  if not scores or finished[scores[0]].isna().all():
    return None
  rates = finished.groupby(_RATE, sort=False)[scores[0]].agg(["size", "mean"])
  rates = rates.dropna()
  most = rates[rates["size"] == rates["size"].max()]
  best = finished[finished[_RATE] == most["mean"].idxmax()]
  return str(best[scores[0]].idxmax())


def show_score(value: float | None) -> str:
  """Returns a score with two decimals, or a dash for an undefined one."""
  return "-" if value is None or pd.isna(value) else f"{value:.2f}"


def _shown(frame: pd.DataFrame, task: str, metric: str) -> list[str]:
  """Returns the scores to show: for SQuAD, two of the dozen that there are."""
  scores = [name for name in frame if "/" in name]
  if task.startswith("squad"):
    exact = "best_exact" if metric == "best_f1" else "exact_match"
    scores = [n for n in (f"eval/{metric}", f"eval/{exact}") if n in scores]
  return scores


def selection(
  frame: pd.DataFrame, best: str, task: str, metric: str
) -> dict[str, Any]:
  """Returns the content of `selection.json`; `best` names the chosen run."""
  rate = float(frame[_RATE][best])
  chosen = frame[(frame[_RATE] == rate) & (frame.problem == "")]
  scores = {}
  for name in _shown(frame, task, metric):
    values = chosen[name].dropna()
    scores[name] = {
      "mean": float(values.mean()) if len(values) else None,
      "std": float(values.std()) if len(values) > 1 else None,
      "runs": len(values),
    }
  about = {"best": best, "task": task, "learning_rate": rate}
  return about | {"metric": metric, "scores": scores}


def render(
  frame: pd.DataFrame, best: str | None, task: str, metric: str, title: str
) -> rich_table.Table:
  """Returns the table: mean and deviation over seeds per learning rate."""
  columns = _shown(frame, task, metric) if best else []
  table = rich_table.Table(title=title)
  for name in ("peak rate", *columns, "runs"):
    table.add_column(name.replace("/", "\n"), justify="right")
  table.add_column("", overflow="fold")
  for rate, group in frame.groupby(_RATE, sort=False):
    finished = group[group.problem == ""]
    cells = []
    for name in columns:
      values = finished[name].dropna()
      deviation = f" +- {values.std():.2f}" if len(values) > 1 else ""
      cells.append(show_score(values.mean()) + deviation)
    notes = ["selected" if best in group.index else "", *group.problem]
    counts = f"{len(finished)} of {len(group)}"
    table.add_row(f"{rate:g}", *cells, counts, "\n".join(filter(None, notes)))
  return table


def render_column(scores: Mapping[str, float], title: str) -> rich_table.Table:
  """Returns a column of the paper's tables, with a dash for what is missing."""
  table = rich_table.Table(title=title)
  table.add_column("")
  table.add_column("dev (%)", justify="right")
  for row in column_lib.ROWS:
    name = f"{row} (Matthews' correlation)" if row == column_lib.AX else row
    end_section = row in (column_lib.GLUE_AVERAGE, column_lib.SQUAD_ROWS[-1])
    table.add_row(name, show_score(scores.get(row)), end_section=end_section)
  return table


def as_text(table: rich_table.Table) -> str:
  """Returns a table as printed text, 100 characters wide."""
  text = io.StringIO()
  rich_console.Console(file=text, width=100).print(table)
  return text.getvalue()
