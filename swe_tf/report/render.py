"""Sections to Markdown, CSV and one HTML page that needs nothing else."""

import base64
from collections.abc import Sequence
import csv
import html
import io

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


def to_csv(section: tables.Section) -> str:
  """Returns all tables of a section as one CSV, at full precision.

  A statistic is three columns: mean, std and n. The first column is the
  setting, where tables have one.
  """
  text = io.StringIO()
  writer = csv.writer(text, lineterminator="\n")
  columns = section.tables[0].columns
  names = []
  for column in columns:
    names += (
      [f"{column.key}_{part}" for part in ("mean", "std", "n")]
      if column.spread
      else [column.key]
    )
  writer.writerow(["setting", *names])
  for table in section.tables:
    for row in table.rows:
      cells = []
      for column in columns:
        cell = row.get(column.key)
        if column.spread:
          cells += [cell.mean, cell.std, cell.n] if cell else [None] * 3
        else:
          assert not isinstance(cell, groups.Statistic), column.key
          cells.append(cell)
      writer.writerow([table.title, *cells])
  return text.getvalue()


def to_markdown(sections: Sequence[tables.Section], head: str) -> str:
  """Returns the report in Markdown; figures are files beside it."""
  lines = [f"# {TITLE}", "", head, "", *(f"- {line}" for line in READING), ""]
  for section in sections:
    lines += [f"## {section.title}", ""]
    if section.is_empty:
      lines += [section.absent, ""]
      continue
    for line in section.text:
      lines += [line, ""]
    for table in section.tables:
      if table.title:
        lines += [f"### {table.title}", ""]
      for note in table.notes:
        lines += [note, ""]
      lines += [
        _markdown_row(column.title for column in table.columns),
        _markdown_row("---" for _ in table.columns),
      ]
      lines += [
        _markdown_row(
          column.show(row.get(column.key)) for column in table.columns
        )
        for row in table.rows
      ]
      lines.append("")
    for figure in section.figures:
      lines += [
        f"![{figure.caption}]({figure.name}.png)",
        "",
        figure.caption,
        "",
      ]
  return "\n".join(lines)


def _markdown_row(cells) -> str:
  return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_html(sections: Sequence[tables.Section], head: str) -> str:
  """Returns the report as a page with its figures in it."""
  parts = [
    "<!DOCTYPE html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    f"<title>{html.escape(TITLE)}</title>",
    f"<style>{_STYLE}</style>",
    "</head>",
    "<body>",
    f"<h1>{html.escape(TITLE)}</h1>",
    _tag("p", head),
    "<ul>",
    *(_tag("li", line) for line in READING),
    "</ul>",
  ]
  for section in sections:
    parts += [f'<section id="{section.name}">', _tag("h2", section.title)]
    if section.is_empty:
      parts.append(_tag("p", section.absent))
    else:
      parts += [_tag("p", line) for line in section.text]
      for table in section.tables:
        parts += _html_table(table)
      parts += [_html_figure(figure) for figure in section.figures]
    parts.append("</section>")
  return "\n".join([*parts, "</body>", "</html>", ""])


def _tag(name: str, text: str, kind: str = "") -> str:
  return f"<{name}{kind}>{html.escape(text)}</{name}>"


def _html_table(table: tables.Table) -> list[str]:
  kinds = [
    ' class="paper"' if "paper" in column.key else ""
    for column in table.columns
  ]
  lines = [_tag("h3", table.title)] if table.title else []
  lines += [_tag("p", note) for note in table.notes]
  lines += ['<div class="wide"><table>', "<thead><tr>"]
  lines += [
    _tag("th", column.title, kind) for column, kind in zip(table.columns, kinds)
  ]
  lines.append("</tr></thead><tbody>")
  for row in table.rows:
    lines.append(
      "<tr>"
      + "".join(
        _tag("td", column.show(row.get(column.key)), kind)
        for column, kind in zip(table.columns, kinds)
      )
      + "</tr>"
    )
  return [*lines, "</tbody></table></div>"]


def _html_figure(figure: tables.Figure) -> str:
  data = base64.b64encode(figure.svg).decode("ascii")
  caption = html.escape(figure.caption)
  return (
    f'<figure><img alt="{caption}" '
    f'src="data:image/svg+xml;base64,{data}">'
    f"<figcaption>{caption}</figcaption></figure>"
  )
