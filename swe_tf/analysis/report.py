"""A report: its sections from the frames of runs and arms, and its files.

The user's own runs come first. The paper's numbers stand in one section, for
runs that are rows of its tables. `templates/report.html.jinja` and
`templates/report.md.jinja` show the same data, with the words of
`templates/text.jinja`.
"""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import comparisons
from swe_tf.analysis import figures as figures_lib
from swe_tf.analysis import finetuning
from swe_tf.analysis import pages
from swe_tf.analysis import paper
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import statistics
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
    return Report(say(found)[0], [], counts, [], [column_section])
  runs = comparisons.arrange(found)
  arms = comparisons.summarize(runs)
  first, *settings = say(arms)
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


def say(arms: pd.DataFrame) -> list[str]:
  """Returns the verdict, then a line for each setting if there are several."""
  said = {}
  for setting in arms.setting.unique() if len(arms) else ():
    found = arms[arms.setting == setting]
    if found.loss_difference.notna().any():
      said[setting] = _judge(found)
  if len(said) == 1:
    return [line for _, line in said.values()]
  if said:
    counts = collections.Counter(word for word, _ in said.values()).items()
    shown = ", ".join(f"{word} in {count}" for word, count in counts)
    return [
      f"Against the baseline, in {len(said)} settings: {shown}.",
      *(f"{setting}: {line}" for setting, (_, line) in said.items()),
    ]
  why = "no method has finished with the same seed as the baseline"
  if not len(arms) or not any(arms.seeds):
    why = "no pre-training run has finished"
  elif not arms[arms.seeds > 0].is_baseline.any():
    why = "no baseline has finished"
  return [f"There is nothing to compare: {why}."]


def _judge(found: pd.DataFrame) -> tuple[str, str]:
  """Returns the verdict on the arms of a setting, and it with its caveats.

  It is about Algorithm 1 with full sharing and the paper's tau, if it was run;
  otherwise Algorithm 1; otherwise a variant of it; otherwise any method. Of
  several, it is about the one that ended lowest.
  """
  compared = sorted(
    found[found.loss_difference.notna()].itertuples(),
    key=lambda arm: arm.loss_difference.mean,
  )
  swe = [arm for arm in compared if arm.is_swe]
  fixed = [arm for arm in swe if arm.is_fixed]
  # An encoder that nobody knows has no unit.
  papers = [a for a in fixed if a.is_papers and str(a.unit)[:2] == "1x"]
  judged: Any = (papers + fixed + swe + compared)[0]
  baseline = next(arm for arm in found.itertuples() if arm.is_baseline)
  ends = judged.validation_loss, baseline.validation_loss
  is_short = statistics.too_short(judged.entropy, *ends)
  text = pages.render(
    "verdict.jinja",
    judged=judged,
    lowest=compared[0],
    baseline=baseline,
    compared=len(compared),
    too_short=statistics.TOO_SHORT if is_short else "",
    same_cost=statistics.SAME_COST,
    decided=(statistics.PAYS, statistics.COSTS),
    unequal=statistics.UNEQUAL,
  )
  return judged.verdict, " ".join(text.split())


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
