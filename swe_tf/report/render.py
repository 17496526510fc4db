"""Sections to Markdown, CSV and one HTML page that needs nothing else."""

import base64
from collections.abc import Iterator, Sequence
import csv
import html
import io
from typing import Any

from swe_tf.report import groups
from swe_tf.report import tables
from swe_tf.sharing import untie_step as untie_step_lib

TITLE = "Sharing weights, then unsharing: runs beside the paper"

READING = (
  "Every number is of a finished run, or stands in a column of the paper. An "
  "empty cell was not measured.",
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
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 1rem; }
th, td { border: 1px solid #ccc; padding: .25rem .5rem; text-align: right;
  white-space: nowrap; }
th { background: #f2f2f2; white-space: normal; vertical-align: bottom; }
td:first-child, th:first-child { text-align: left; }
td.paper, th.paper { background: #fbf6e9; }
img { max-width: 100%; height: auto; }
figcaption { font-size: 13px; color: #444; }
"""


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


def _blocks(section: tables.Section) -> Iterator[tuple[str, Any]]:
  """Yields what a section consists of, each after its tag."""
  yield "h2", section.title
  for line in [section.absent] if section.is_empty else section.text:
    yield "p", line
  for table in () if section.is_empty else section.tables:
    if table.title:
      yield "h3", table.title
    for note in table.notes:
      yield "p", note
    yield "table", table
  for figure in section.figures:
    yield "figure", figure


def _cells(table: tables.Table) -> list[list[str]]:
  return [
    [column.show(row.get(column.key)) for column in table.columns]
    for row in table.rows
  ]


def to_markdown(sections: Sequence[tables.Section], head: str) -> str:
  """Returns the report in Markdown; figures are files beside it."""
  lines = [f"# {TITLE}", "", head, "", *(f"- {line}" for line in READING), ""]
  for section in sections:
    for tag, content in _blocks(section):
      if tag == "table":
        titles = [column.title for column in content.columns]
        rows = [titles, ["---"] * len(titles), *_cells(content)]
        lines += map(_markdown_row, rows)
      elif tag == "figure":
        caption = _markdown_text(content.caption)
        lines += [f"![{caption}]({content.name}.png)", "", caption]
      else:
        lines.append(_MARKS[tag] + _markdown_text(content))
      lines.append("")
  return "\n".join(lines)


def _markdown_text(text: str) -> str:
  return text.replace("<", "&lt;")  # Markdown may have HTML in it.


def _markdown_row(cells: Sequence[str]) -> str:
  texts = [_markdown_text(cell).replace("|", "\\|") for cell in cells]
  return f"| {' | '.join(texts)} |"


def to_html(sections: Sequence[tables.Section], head: str) -> str:
  """Returns the report as a page with its figures in it."""
  lines = [
    "<!DOCTYPE html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    _tag("title", TITLE),
    f"<style>{_STYLE}</style>",
    "</head>",
    "<body>",
    _tag("h1", TITLE),
    _tag("p", head),
    "<ul>",
    *(_tag("li", line) for line in READING),
    "</ul>",
  ]
  for section in sections:
    lines.append(f'<section id="{section.name}">')
    for tag, content in _blocks(section):
      if tag == "table":
        lines += _html_table(content)
      elif tag == "figure":
        lines.append(_html_figure(content))
      else:
        lines.append(_tag(tag, content))
    lines.append("</section>")
  return "\n".join([*lines, "</body>", "</html>", ""])


def _tag(name: str, text: str, kind: str = "") -> str:
  return f"<{name}{kind}>{html.escape(text)}</{name}>"


def _html_table(table: tables.Table) -> list[str]:
  kinds = [
    ' class="paper"' if "paper" in column.key else ""
    for column in table.columns
  ]
  titles = [column.title for column in table.columns]
  return [
    '<div class="wide"><table>',
    "<thead><tr>",
    *(_tag("th", title, kind) for title, kind in zip(titles, kinds)),
    "</tr></thead><tbody>",
    *(
      f"<tr>{''.join(_tag('td', *pair) for pair in zip(cells, kinds))}</tr>"
      for cells in _cells(table)
    ),
    "</tbody></table></div>",
  ]


def _html_figure(figure: tables.Figure) -> str:
  data = base64.b64encode(figure.svg).decode("ascii")
  caption = html.escape(figure.caption)
  return (
    f'<figure><img alt="{caption}" '
    f'src="data:image/svg+xml;base64,{data}">'
    f"<figcaption>{caption}</figcaption></figure>"
  )
