"""The parts of a report in order; the report as Markdown, its tables as CSV.

`page` makes the HTML page.
"""

from collections.abc import Iterable, Iterator, Sequence
import csv
import dataclasses
import io
from typing import Any

from swe_tf.analysis import groups
from swe_tf.analysis import tables
from swe_tf.sharing import untie_step as untie_step_lib

TITLE = "Sharing weights, then unsharing: runs beside the paper"

READING = (
  "Every number is from a finished run or, in the paper's columns, from the "
  "paper. An empty cell was not measured; a column with only empty cells is "
  "left to the CSV file.",
  "A method is ahead of the baseline, or behind it, if Student's 95% interval "
  "of the difference excludes 0; one seed cannot show either.",
  "± is the sample standard deviation over seeds, not the error of the mean; "
  "runs are averaged only if they differ in nothing but the seed.",
  "Gains over and differences from the baseline are computed seed by seed, and "
  "averaged over the seeds that both have.",
  "The paper's gain is over the paper's own baseline, from single runs of the "
  "model, data and budget in the column of its scale: next to runs at another "
  "scale, its sign means something, its size does not. It is given where "
  f"method, unit and untie step ({untie_step_lib.PAPERS_FRACTION:.0%} of the "
  "steps) are the same in kind.",
  "The paper's score is given only where model, data, batch and steps are "
  "the paper's too.",
  "The budget is that of one run: all runs of a setting see the same steps and "
  "tokens. The wall time is what the runs recorded, on their machine.",
)

_MARKS = {"h2": "## ", "h3": "### ", "p": ""}


def to_csv(section: tables.Section) -> str:
  """Returns all tables of a section as one CSV, at full precision.

  A statistic takes three columns: mean, std and n. The first column is the
  setting, if the table has one.
  """
  text = io.StringIO()
  writer = csv.writer(text, lineterminator="\n")
  names = ["setting"]
  for column in section.tables[0].columns:
    parts = ("_mean", "_std", "_n") if column.spread else ("",)
    names += [column.key + part for part in parts]
  writer.writerow(names)
  for table in section.tables:
    for row in table.rows:
      cells: list[tables.Cell] = [table.title]
      for column in table.columns:
        cell = row.get(column.key)
        if isinstance(cell, groups.Statistic):
          assert column.spread, column.key
          cells += [cell.mean, cell.std, cell.n]
        else:
          cells += [cell, None, None] if column.spread else [cell]
      writer.writerow(cells)
  return text.getvalue()


def parts(
  sections: Sequence[tables.Section], opening: tables.Opening
) -> Iterator[tuple[str, Iterable[tuple[str, Any]]]]:
  """Yields the name and the blocks of each part of a report, in order.

  A block is a tag with its content.
  """
  figures = [("figure", figure) for figure in opening.figures]
  lists = [("list", opening.settings)] if opening.settings else []
  yield (
    "opening",
    [("verdict", opening.verdict), *lists, *figures, ("p", opening.runs)],
  )
  for section in sections:
    if not section.is_empty:
      yield section.name, _blocks(section)
  yield "reading", [("h2", "How to read the numbers"), ("list", READING)]
  empty = [
    f"{section.title}: {section.absent}"
    for section in sections
    if section.is_empty
  ]
  if empty:
    yield "absent", [("h2", "What these runs do not show"), ("list", empty)]


def _blocks(section: tables.Section) -> Iterator[tuple[str, Any]]:
  """Yields the blocks of a section that is not empty."""
  yield "h2", section.title
  for line in section.text:
    yield "p", line
  for table in section.tables:
    if table.title:
      yield "h3", table.title
    for note in table.notes:
      yield "p", note
    yield "table", _without_empty_columns(table)
  for figure in section.figures:
    yield "figure", figure


def _without_empty_columns(table: tables.Table) -> tables.Table:
  """Returns a table without the columns in which nothing was measured."""
  columns = [
    column
    for column in table.columns
    if any(column.show(row.get(column.key)) for row in table.rows)
  ]
  return dataclasses.replace(table, columns=columns)


def cells_of(table: tables.Table) -> list[list[str]]:
  return [
    [column.show(row.get(column.key)) for column in table.columns]
    for row in table.rows
  ]


def to_markdown(
  sections: Sequence[tables.Section], opening: tables.Opening
) -> str:
  """Returns the report in Markdown; figures are files beside it."""
  lines = [f"# {TITLE}", ""]
  for _, blocks in parts(sections, opening):
    for tag, content in blocks:
      if tag == "table":
        titles = [column.title for column in content.columns]
        rows = [titles, ["---"] * len(titles), *cells_of(content)]
        lines += map(_markdown_row, rows)
      elif tag == "figure":
        caption = _markdown_text(content.caption)
        lines += [f"![{caption}]({content.name}.png)", "", caption]
      elif tag == "list":
        lines += [f"- {_markdown_text(line)}" for line in content]
      elif tag == "verdict":
        lines.append(f"**{_markdown_text(content)}**")
      else:
        lines.append(_MARKS[tag] + _markdown_text(content))
      lines.append("")
  return "\n".join(lines)


def _markdown_text(text: str) -> str:
  return text.replace("<", "&lt;")  # Markdown may contain HTML.


def _markdown_row(cells: Sequence[str]) -> str:
  texts = [_markdown_text(cell).replace("|", "\\|") for cell in cells]
  return f"| {' | '.join(texts)} |"
