"""Turns the results of runs into a table and a choice.

Imports no TensorFlow. The table has no times or dates, so an interrupted sweep
ends with the same table.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import io
import statistics
from typing import Any

from rich import console as rich_console
from rich import table as rich_table

from swe_tf.scoring import averages
from swe_tf.scoring import column
from swe_tf.studies.finetune import protocol


@dataclasses.dataclass(frozen=True)
class Row:
  """The runs with one learning rate.

  Attributes:
    learning_rate: The peak learning rate.
    results: The `result.json` of the runs that finished, by run.
    problems: Why the others did not.
  """

  learning_rate: float
  results: Mapping[protocol.Run, Mapping[str, Any]]
  problems: Sequence[str]

  def values(self, split: str, metric: str) -> list[float]:
    """Returns the defined values of a metric, at most one per run."""
    found = [
      result["scores"][split][metric] for result in self.results.values()
    ]
    return [value for value in found if value is not None]

  def mean(self, split: str, metric: str) -> float | None:
    values = self.values(split, metric)
    return statistics.mean(values) if values else None


@dataclasses.dataclass(frozen=True)
class Choice:
  """What the validation set selects.

  Attributes:
    row: The learning rate with the best mean.
    run: Its best run.
  """

  row: Row
  run: protocol.Run


def make_rows(
  runs: Sequence[protocol.Run],
  results: Mapping[str, Mapping[str, Any]],
  failures: Mapping[str, Exception],
) -> list[Row]:
  """Groups runs by learning rate.

  Args:
    runs: All runs of the sweep.
    results: The `result.json` of the runs that have one, by name.
    failures: Why the others failed, by name.
  """
  rows = []
  for rate in dict.fromkeys(run.learning_rate for run in runs):
    group = [run for run in runs if run.learning_rate == rate]
    finished = {
      run: results[run.name]
      for run in group
      if results.get(run.name, {}).get("status") == "finished"
    }
    problems = [
      f"seed {run.seed} diverged: {results[run.name]['reason']}"
      if run.name in results
      else f"seed {run.seed} failed: {failures[run.name]}"
      for run in group
      if run not in finished
    ]
    rows.append(Row(rate, finished, problems))
  return rows


def choose(rows: Sequence[Row], metric: str) -> Choice | None:
  """Selects a learning rate and a run; None if no run has a score.

  An incomplete rate is chosen only if every rate is incomplete, and then from
  those with the most runs: the mean of the runs that happened to survive says
  little.

  Args:
    rows: The runs.
    metric: The metric that selects, on the first split.
  """
  scored = []
  for row in rows:
    if row.results:
      split = next(iter(next(iter(row.results.values()))["scores"]))
      mean = row.mean(split, metric)
      if mean is not None:
        scored.append((len(row.results), mean, row, split))
  if not scored:
    return None
  *_, row, split = max(scored, key=lambda entry: entry[:2])

  def value(run):
    score = row.results[run]["scores"][split][metric]
    return float("-inf") if score is None else score

  return Choice(row, max(row.results, key=value))


def show_score(value: float | None) -> str:
  """Returns a score with two decimals, or a dash for an undefined one."""
  return "-" if value is None else f"{value:.2f}"


def summarize(result: Mapping[str, Any], metric: str) -> str:
  """Summarizes a `result.json` in a few words."""
  if result["status"] != "finished":
    return f"diverged: {result['reason']}"
  scores = next(iter(result["scores"].values()))
  return f"{metric} {show_score(scores[metric])}"


def shown_metrics(
  task: str, scores: Mapping[str, Any], metric: str
) -> Sequence[str]:
  """Returns the metrics that the table shows, the one that selects first.

  SQuAD has a dozen numbers; the others are in `result.json`.
  """
  if not task.startswith("squad"):
    return list(scores)
  return [metric, "best_exact" if metric == "best_f1" else "exact_match"]


def selection(choice: Choice, metric: str) -> dict[str, Any]:
  """Returns the content of `selection.json`; `best` names the chosen run."""
  result = choice.row.results[choice.run]
  scores = {}
  for split, found in result["scores"].items():
    for name in shown_metrics(result["task"], found, metric):
      values = choice.row.values(split, name)
      scores[f"{split}/{name}"] = {
        "mean": statistics.mean(values) if values else None,
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "runs": len(values),
      }
  return {
    "best": choice.run.name,
    "task": result["task"],
    "learning_rate": choice.row.learning_rate,
    "metric": metric,
    "scores": scores,
  }


def render(
  rows: Sequence[Row], choice: Choice | None, metric: str, title: str
) -> rich_table.Table:
  """Returns the table: mean and deviation over seeds per learning rate."""
  table = rich_table.Table(title=title)
  table.add_column("peak rate", justify="right")
  columns = []
  if choice:
    result = choice.row.results[choice.run]
    columns = [
      (split, name)
      for split, scores in result["scores"].items()
      for name in shown_metrics(result["task"], scores, metric)
    ]
  for split, name in columns:
    table.add_column(f"{split}\n{name}", justify="right")
  table.add_column("runs", justify="right")
  table.add_column("", overflow="fold")
  for row in rows:
    notes = ["selected"] if choice and row is choice.row else []
    total = len(row.results) + len(row.problems)
    table.add_row(
      f"{row.learning_rate:g}",
      *(_mean_and_deviation(row.values(*column)) for column in columns),
      f"{len(row.results)} of {total}",
      "\n".join([*notes, *row.problems]),
    )
  return table


def _mean_and_deviation(values: Sequence[float]) -> str:
  mean = show_score(statistics.mean(values) if values else None)
  if len(values) < 2:
    return mean
  return f"{mean} +- {statistics.stdev(values):.2f}"


def render_column(scores: Mapping[str, float], title: str) -> rich_table.Table:
  """Returns a column of the paper's tables, with a dash for what is missing."""
  table = rich_table.Table(title=title)
  table.add_column("")
  table.add_column("dev (%)", justify="right")
  for row in column.ROWS:
    name = f"{row} (Matthews' correlation)" if row == column.AX else row
    end_section = row in (column.GLUE_AVERAGE, averages.SQUAD_ROWS[-1])
    table.add_row(name, show_score(scores.get(row)), end_section=end_section)
  return table


def as_text(table: rich_table.Table) -> str:
  """Returns a table as printed text, 100 characters wide."""
  text = io.StringIO()
  rich_console.Console(file=text, width=100).print(table)
  return text.getvalue()
