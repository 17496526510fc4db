"""Sections to Markdown, CSV and one HTML page that needs nothing else."""

from collections.abc import Iterable, Iterator, Sequence
import csv
import dataclasses
import io
from typing import Any

from swe_tf.report import groups
from swe_tf.report import html_page
from swe_tf.report import tables
from swe_tf.sharing import untie_step as untie_step_lib

TITLE = "Sharing weights, then unsharing: runs beside the paper"

READING = (
  "Every number is of a finished run, or stands in a column of the paper. An "
  "empty cell was not measured; a column without any is only in the CSV file.",
  "A method is ahead of the baseline, or behind it, if Student's 95% interval "
  "of the difference excludes 0; one seed tells neither.",
  "± is the sample standard deviation over seeds, not the error of the mean; "
  "runs are averaged only if nothing but their seeds differs.",
  "Gains and differences to the baseline are means over the seeds that both "
  "have, taken seed by seed.",
  "The paper's gain is over the paper's own baseline, from single runs of "
  "the model, data and budget in the column of its scale: beside another "
  "scale its sign says something, its size does not. It is given where "
  f"method, unit and untie step ({untie_step_lib.PAPERS_FRACTION:.0%} of the "
  "steps) are the same in kind.",
  "The paper's score is given only where model, data, batch and steps are "
  "the paper's too.",
  "The budget is that of one run: all runs of a setting see the same steps "
  "and tokens. The wall time is what the runs wrote down, on their machine.",
)

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto;
  max-width: 90rem; padding: 0 1rem; color: #1a1a1a; background: #fff; }
h1 { font-size: 1.5rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; }
ul { padding-left: 1.2rem; }
p, li { max-width: 60rem; overflow-wrap: break-word; }
.verdict { font-size: 1.15rem; border-left: .3rem solid #0072b2;
  padding-left: .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; font-size: 13px;
  margin: .5rem 0 1rem; border: solid #ccc; border-width: 1px 0 0 1px; }
th, td { border: solid #ccc; border-width: 0 1px 1px 0; text-align: right;
  padding: .25rem .5rem; white-space: nowrap; background: #fff; }
th { background: #f2f2f2; white-space: normal; vertical-align: bottom;
  min-width: 4rem; }
th.paper { min-width: 6rem; }
td:first-child, th:first-child { text-align: left; }
td.paper, th.paper { background: #fbf6e9; }
td.first, th.first { position: sticky; z-index: 1; box-sizing: border-box; }
td.last, th.last { border-right: 2px solid #999; }
figure { margin: 1rem 0; overflow-x: auto; }
img { max-width: 100%; min-width: 40rem; height: auto; }
figcaption { font-size: 13px; color: #444; position: sticky; left: 0; }
@media (max-width: 45rem) {
  body { margin-top: 1rem; }
  td.first:not(:first-child), th.first:not(:first-child) { position: static;
    border-right: 1px solid #ccc; }
  td.first:first-child, th.first:first-child { white-space: normal;
    max-width: 9rem; overflow-wrap: anywhere; border-right: 2px solid #999; }
}
"""
# The columns that stay in sight while a table is scrolled: the first ones, as
# long as they are few, and few letters wide.
_FIRST_COLUMNS, _FIRST_LENGTH = 4, 40
# In em, as those of a heading in bold are the same.
_LETTER, _PADDING = 0.6, 1.4

_MARKS = {"h2": "## ", "h3": "### ", "p": ""}


def to_csv(section: tables.Section) -> str:
  """Returns all tables of a section as one CSV, at full precision.

  A statistic is three columns: mean, std and n. The first column is the
  setting, where tables have one.
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


def _parts(
  sections: Sequence[tables.Section], opening: tables.Opening
) -> Iterator[tuple[str, Iterable[tuple[str, Any]]]]:
  """Yields the parts of a report in order, the blocks of each after its name.

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
  """Yields what a section with runs consists of, each after its tag."""
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


def _cells(table: tables.Table) -> list[list[str]]:
  return [
    [column.show(row.get(column.key)) for column in table.columns]
    for row in table.rows
  ]


def to_markdown(
  sections: Sequence[tables.Section], opening: tables.Opening
) -> str:
  """Returns the report in Markdown; figures are files beside it."""
  lines = [f"# {TITLE}", ""]
  for _, blocks in _parts(sections, opening):
    for tag, content in blocks:
      if tag == "table":
        titles = [column.title for column in content.columns]
        rows = [titles, ["---"] * len(titles), *_cells(content)]
        lines += map(_markdown_row, rows)
      elif tag == "figure":
        caption = _markdown_text(content.caption)
        lines += [f"![{caption}]({content.name}.png)", "", caption]
      elif tag == "list":
        lines += [f"- {line}" for line in content]
      elif tag == "verdict":
        lines.append(f"**{content}**")
      else:
        lines.append(_MARKS[tag] + _markdown_text(content))
      lines.append("")
  return "\n".join(lines)


def _markdown_text(text: str) -> str:
  return text.replace("<", "&lt;")  # Markdown may have HTML in it.


def _markdown_row(cells: Sequence[str]) -> str:
  texts = [_markdown_text(cell).replace("|", "\\|") for cell in cells]
  return f"| {' | '.join(texts)} |"


def to_html(sections: Sequence[tables.Section], opening: tables.Opening) -> str:
  """Returns the report as a page with its figures in it."""
  lines = [html_page.tag("h1", TITLE)]
  for name, blocks in _parts(sections, opening):
    lines.append(f'<section id="{name}">')
    for tag, content in blocks:
      if tag == "table":
        lines += _html_table(content)
      elif tag == "figure":
        lines.append(html_page.figure(content.svg, content.caption))
      elif tag == "list":
        lines += [
          "<ul>",
          *(html_page.tag("li", line) for line in content),
          "</ul>",
        ]
      elif tag == "verdict":
        lines.append(html_page.tag("p", content, ' class="verdict"'))
      else:
        lines.append(html_page.tag(tag, content))
    lines.append("</section>")
  return html_page.page(TITLE, lines, _STYLE)


def _html_table(table: tables.Table) -> list[str]:
  rows = _cells(table)
  titles = [column.title for column in table.columns]
  kinds = _kinds(table, rows)
  return [
    '<div class="wide"><table>',
    "<thead><tr>",
    *(html_page.tag("th", title, kind) for title, kind in zip(titles, kinds)),
    "</tr></thead><tbody>",
    *(_html_row(row, kinds) for row in rows),
    "</tbody></table></div>",
  ]


def _html_row(cells: Sequence[str], kinds: Sequence[str]) -> str:
  inside = (html_page.tag("td", *pair) for pair in zip(cells, kinds))
  return f"<tr>{''.join(inside)}</tr>"


def _kinds(table: tables.Table, rows: Sequence[Sequence[str]]) -> list[str]:
  """Returns the class of each column, and the place of those that stay.

  A column that stays has to know how wide those before it are, so that all but
  the last of them are given a width: that of their longest word.
  """
  kinds = [
    ' class="paper"' if "paper" in column.key else ""
    for column in table.columns
  ]
  lengths = []
  for index, column in enumerate(table.columns[:_FIRST_COLUMNS]):
    words = [*column.title.split(), *(row[index] for row in rows)]
    lengths.append(max(map(len, words)))
    if sum(lengths) > _FIRST_LENGTH and index:
      lengths.pop()
      break
  left = 0.0
  for index, length in enumerate(lengths):
    width = _PADDING + _LETTER * length
    last = " last" if index == len(lengths) - 1 else ""
    kinds[index] = (
      f' class="first{last}" '
      f'style="left: {left:.1f}em; min-width: {width:.1f}em"'
    )
    left += width
  return kinds
