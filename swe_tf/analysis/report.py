"""A report: its sections from the frames of runs and arms, and its files.

The user's own runs come first. The paper's numbers stand in one section, for
runs that are rows of its tables. `templates/report.html.jinja` and
`templates/report.md.jinja` show the same data, with the words of
`templates/text.jinja`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import comparisons
from swe_tf.analysis import figures as figures_lib
from swe_tf.analysis import finetuning
from swe_tf.analysis import pages
from swe_tf.analysis import paper
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis.pages import Section
from swe_tf.scoring import column as column_lib

TITLE = "Sharing weights, then unsharing: what your runs show"


class Report(NamedTuple):
  """A report: its verdict, in all and by setting, and what supports it."""

  verdict: str
  settings: Sequence[str]
  counts: str
  figures: Sequence[figures_lib.Figure]
  sections: Sequence[Section]


def make(roots: Sequence[files.PathLike], price: float | None = None) -> Report:
  """Reads runs and makes a report; `price` is in dollars per hour."""
  columns = finetuning.read_columns(roots)
  found, curves = runs_lib.read(roots)
  if found.empty and columns.empty:
    raise errors.UsageError(
      f"{', '.join(map(str, roots))}: no pre-training run in it (a directory "
      "with params.yaml, train/ and validation/)."
    )
  if price is not None and len(found):
    found["dollars"] = [
      seconds and price * seconds / 3600 for seconds in found.seconds
    ]
  tasks = finetuning.read_tasks(roots)
  found, notes = finetuning.attach(found, tasks)
  # The scores of single checkpoints, in the rows of the paper.
  rows = [
    {
      "score": row,
      "dev": each.scores.get(row),
      "setting": f"{each.name}: {each.checkpoint.name}, {each.init} weights",
    }
    for each in columns.itertuples()
    for row in column_lib.ROWS
  ]
  column_section = Section("columns", pd.DataFrame(rows, dtype=object))
  if found.empty:
    counts = "No pre-training runs."
    return Report(comparisons.say(found)[0], [], counts, [], [column_section])
  runs = comparisons.arrange(found)
  arms = comparisons.summarize(runs)
  first, *settings = comparisons.say(arms)
  compared = arms[arms.loss_difference.notna()]
  count = runs.setting.nunique()
  shown = comparisons.shown_runs(runs).groupby("setting", sort=False)
  losses = [
    figures_lib.draw_losses(f"loss_{number}", found, curves)
    for number, (_, found) in enumerate(shown, start=1)
  ]
  differences = [
    figures_lib.draw_differences(f"differences_{number}", found)
    for number, (_, found) in enumerate(
      compared.groupby("setting", sort=False), start=1
    )
  ]
  return Report(
    first,
    settings,
    f"{len(runs)} runs, {len(comparisons.finished_runs(runs))} of them "
    f"finished, in {count} {'setting' if count == 1 else 'settings'}.",
    [*sum(losses[:1], []), *differences],
    _sections(runs, arms, sum(losses[1:], []), column_section, notes),
  )


def _sections(
  runs: pd.DataFrame,
  arms: pd.DataFrame,
  losses: Sequence[figures_lib.Figure],
  columns: Section,
  notes: Sequence[str],
) -> list[Section]:
  """Returns the sections that have something to show."""
  entropies = [
    f"Entropy of single tokens: {entropy:.4f} nats. A model that ignores the "
    "context cannot have a lower loss."
    for entropy in sorted(runs.entropy.dropna().unique())
  ]
  by = ("setting", "arm", "learning_rate")
  rates = comparisons.summarize(runs[runs.rates > 1], by)
  scores = paper.scores(runs)
  tuned = scores[scores.score != "MLM"]
  sweeps: list[figures_lib.Figure] = []
  for _, found in arms[arms.seeds > 0].groupby("setting", sort=False):
    fixed = found[found.is_fixed]
    taus = fixed.groupby("unit").untie_step.transform("nunique")
    if (taus > 1).any():
      chosen = pd.concat([found[found.is_baseline], fixed[taus > 1]])
      name = f"untie_step_{len(sweeps) // 2 + 1}"
      sweeps += figures_lib.draw_untie_steps(name, chosen)
  listed = runs.assign(method=runs.label, setting="").sort_values("run")
  listed["learning_rate"] = [rate or None for rate in listed.learning_rate]
  sections = [
    Section("methods", arms, text=entropies),
    Section("losses", figures=losses),
    Section("untie_steps", figures=sweeps),
    Section("learning_rates", rates),
    Section("finetuning", tuned, text=notes),
    columns,
    Section("paper", scores[scores.paper.notna()]),
    Section("runs", listed),
  ]
  return [s for s in sections if len(s.frame) or s.figures or s.text]


def to_files(report: Report) -> dict[str, bytes]:
  contents = {
    name: pages.render(f"{name}.jinja", title=TITLE, report=report).encode()
    for name in ("report.html", "report.md")
  }
  drawn = [*report.figures]
  for section in report.sections:
    if len(section.frame):
      contents[f"{section.name}.csv"] = section.to_csv().encode()
    drawn += section.figures
  for figure in drawn:
    contents[f"{figure.name}.png"] = figure.png
    contents[f"{figure.name}.svg"] = figure.svg
  return contents
