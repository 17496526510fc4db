"""A report: its data from run directories, and its files.

`templates/report.html.jinja` and `templates/report.md.jinja` show the same
data.
"""

from collections.abc import Sequence
import dataclasses

import pandas as pd

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import comparisons
from swe_tf.analysis import figures
from swe_tf.analysis import finetuning
from swe_tf.analysis import pages
from swe_tf.analysis import paper
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import sections as sections_lib
from swe_tf.analysis import tables
from swe_tf.analysis import verdict
from swe_tf.scoring import column

TITLE = "Sharing weights, then unsharing: what your runs show"

READING = (
  "Every number is from a finished run. An empty cell was not measured; a "
  "column with only empty cells is left to the CSV file.",
  "A method pays, or costs, if the 95% interval (Student's t) of its "
  "difference from the baseline excludes 0; otherwise the runs cannot tell, "
  "and one seed never can. Where the FLOPs differ, a lower loss for fewer "
  "FLOPs pays, and a method costs if even a baseline stopped in the middle of "
  "its schedule has the same loss for fewer.",
  "± is half of the 95% interval of the mean over seeds; runs are averaged "
  "only if they differ in nothing but the seed. Losses are in nats per token.",
  "Differences from the baseline are taken seed by seed, over the seeds that "
  "both have.",
  "FLOPs are those of the matrix products, from the config. The wall time is "
  "what the runs recorded, on their machine.",
)


@dataclasses.dataclass(frozen=True)
class Report:
  """A report.

  Attributes:
    runs: The frame of runs, arranged.
    arms: The frame of arms.
    verdict: What the runs show, in a sentence or two.
    settings: The same for each setting, if there are several.
    counts: A sentence that counts the runs and the settings.
    figures: The figures of the verdict.
    sections: The sections that have something to show.
  """

  runs: pd.DataFrame
  arms: pd.DataFrame
  verdict: str
  settings: Sequence[str]
  counts: str
  figures: Sequence[tables.Figure]
  sections: Sequence[tables.Section]


def make(roots: Sequence[files.PathLike], site_scores: str = "") -> Report:
  """Reads runs and makes a report.

  Args:
    roots: The directories to look in.
    site_scores: A file of scores from the benchmark's site; may be empty.

  Raises:
    UsageError: If there are no runs.
  """
  site = column.read_site_scores(site_scores) if site_scores else {}
  columns = finetuning.read_columns(roots)
  found, curves = runs_lib.read(roots)
  if found.empty and columns.empty:
    raise errors.UsageError(
      f"{', '.join(map(str, roots))}: no pre-training run in it (a directory "
      "with params.yaml, train/ and validation/)."
    )
  tasks = finetuning.read_tasks(roots)
  found, notes = finetuning.attach(found, tasks, columns, site)
  column_section = sections_lib.columns(columns, site)
  if found.empty:
    nothing = verdict.say(found)[0]
    counts = "No pre-training runs."
    return Report(found, found, nothing, [], counts, [], [column_section])
  runs = comparisons.arrange(found)
  arms = comparisons.summarize(runs, curves)
  scores = paper.scores(runs)
  first, *settings = verdict.say(arms)
  compared = arms[arms.loss_difference.notna()]
  count = runs.setting.nunique()
  made = (
    sections_lib.methods(arms, runs),
    sections_lib.losses(runs, curves),
    sections_lib.cost(arms),
    sections_lib.untie_steps(arms),
    sections_lib.learning_rates(runs, curves),
    sections_lib.finetuning(scores, notes),
    column_section,
    sections_lib.paper(scores),
    sections_lib.all_runs(runs),
  )
  return Report(
    runs,
    arms,
    first,
    settings,
    f"{len(runs)} runs, {len(comparisons.finished_runs(runs))} of them "
    f"finished, in {count} {'setting' if count == 1 else 'settings'}.",
    [figures.draw_differences(compared)] if len(compared) else [],
    [
      section
      for section in made
      if section.tables
      or section.figures
      or (section.name == "finetuning" and notes)
    ],
  )


def to_files(report: Report) -> dict[str, bytes]:
  """Returns the files of a report by name."""
  data = {"title": TITLE, "report": report, "reading": READING}
  contents = {
    name: pages.render(f"{name}.jinja", **data).encode()
    for name in ("report.html", "report.md")
  }
  drawn = [*report.figures]
  for section in report.sections:
    if section.tables:
      contents[f"{section.name}.csv"] = tables.to_csv(section).encode()
    drawn += section.figures
  for figure in drawn:
    contents[f"{figure.name}.png"] = figure.png
    contents[f"{figure.name}.svg"] = figure.svg
  return contents
