"""Turns the results of runs into a table and a choice.

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
  runs: Sequence[study_file.Run],
  results: Mapping[str, Mapping[str, Any]],
  failures: Mapping[str, str],
) -> pd.DataFrame:
  """Returns a row per run, by name.

  Args:
    runs: All runs of a task.
    results: The `result.json` of the runs that have one, by name.
    failures: Why the others failed, by name.

  Returns:
    The columns `learning_rate`, `seed`, `problem` (empty if it finished), and
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
  little.

  Args:
    frame: The runs.
    metric: The metric that selects, on the first split.
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


def summarize(result: Mapping[str, Any], metric: str) -> str:
  """Summarizes a `result.json` in a few words."""
  if result["status"] != "finished":
    return f"diverged: {result['reason']}"
  scores = next(iter(result["scores"].values()))
  return f"{metric} {show_score(scores[metric])}"


def _shown(frame: pd.DataFrame, task: str, metric: str) -> list[str]:
  """Returns the scores to show: for SQuAD, two of the dozen that there are."""
  scores = [name for name in frame if "/" in name]
  if not task.startswith("squad"):
    return scores
  exact = "best_exact" if metric == "best_f1" else "exact_match"
  return [
    f"eval/{name}" for name in (metric, exact) if f"eval/{name}" in scores
  ]


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
  return {
    "best": best,
    "task": task,
    "learning_rate": rate,
    "metric": metric,
    "scores": scores,
  }


def render(
  frame: pd.DataFrame, best: str | None, task: str, metric: str, title: str
) -> rich_table.Table:
  """Returns the table: mean and deviation over seeds per learning rate."""
  columns = _shown(frame, task, metric) if best else []
  table = rich_table.Table(title=title)
  table.add_column("peak rate", justify="right")
  for name in columns:
    table.add_column(name.replace("/", "\n"), justify="right")
  table.add_column("runs", justify="right")
  table.add_column("", overflow="fold")
  for rate, group in frame.groupby(_RATE, sort=False):
    finished = group[group.problem == ""]
    problems = [text for text in group.problem if text]
    table.add_row(
      f"{rate:g}",
      *(_mean_and_deviation(finished[name].dropna()) for name in columns),
      f"{len(finished)} of {len(group)}",
      "\n".join([*(["selected"] if best in group.index else []), *problems]),
    )
  return table


def _mean_and_deviation(values: "pd.Series[float]") -> str:
  deviation = f" +- {values.std():.2f}" if len(values) > 1 else ""
  return show_score(values.mean()) + deviation


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
