"""Makes the sections and the files of a report from run directories."""

from collections.abc import Sequence

from swe_tf import files
from swe_tf.analysis import columns as columns_lib
from swe_tf.analysis import comparisons
from swe_tf.analysis import figures
from swe_tf.analysis import finetuning
from swe_tf.analysis import found_runs
from swe_tf.analysis import page
from swe_tf.analysis import paper_sections
from swe_tf.analysis import render
from swe_tf.analysis import run_sections
from swe_tf.analysis import tables
from swe_tf.analysis import verdict
from swe_tf.scoring import column


def make_sections(
  roots: Sequence[files.PathLike], site_scores: str = ""
) -> tuple[list[tables.Section], tables.Opening]:
  """Reads runs and makes the sections of a report.

  Args:
    roots: The directories to look in.
    site_scores: A file of scores from the benchmark's site; may be empty.

  Returns:
    The sections, and the opening of the report.

  Raises:
    UsageError: If there are no runs.
  """
  site = column.read_site_scores(site_scores) if site_scores else {}
  columns = columns_lib.read_columns(roots)
  found, notes = finetuning.attach(
    found_runs.read_runs(roots, may_be_none=bool(columns)),
    finetuning.read_finetunings(roots),
    site,
    columns,
  )
  compared = comparisons.compare(found)
  return [
    paper_sections.losses(compared),
    paper_sections.methods(compared),
    paper_sections.widths(compared),
    paper_sections.base(compared),
    paper_sections.units(compared),
    paper_sections.untie_steps(compared),
    run_sections.steps_ratios(compared),
    run_sections.learning_rates(compared),
    run_sections.finetuning(compared, notes),
    columns_lib.section(columns, site),
    run_sections.all_runs(found),
  ], _opening(found, compared)


def _opening(
  found: Sequence[found_runs.Run],
  compared: Sequence[comparisons.Comparison],
) -> tables.Opening:
  finished = sum(run.status == found_runs.FINISHED for run in found)
  first, *settings = verdict.say(compared)
  drawn = {each.title: verdict.differences(each) for each in compared}
  drawn = {title: each for title, each in drawn.items() if each}
  return tables.Opening(
    first,
    settings,
    f"{len(found)} runs, {finished} of them finished, in {len(compared)} "
    f"{'setting' if len(compared) == 1 else 'settings'}.",
    [figures.draw_differences("differences", drawn)] if drawn else [],
  )


def make_files(
  sections: Sequence[tables.Section], opening: tables.Opening
) -> dict[str, bytes]:
  """Returns the files of a report by name."""
  contents = {
    "report.md": render.to_markdown(sections, opening).encode(),
    "report.html": page.to_html(sections, opening).encode(),
  }
  drawn = [*opening.figures]
  for section in sections:
    if section.tables and not section.is_empty:
      contents[f"{section.name}.csv"] = render.to_csv(section).encode()
    drawn += section.figures
  for figure in drawn:
    contents[f"{figure.name}.png"] = figure.png
    contents[f"{figure.name}.svg"] = figure.svg
  return contents
