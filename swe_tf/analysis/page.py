"""A report as one self-contained HTML page.

For desktops and phones: wide tables and figures scroll on their own, and the
first columns of a table stay in view.
"""

from collections.abc import Sequence

from swe_tf.analysis import html_page
from swe_tf.analysis import render
from swe_tf.analysis import tables

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
# The columns that stay in view while a table scrolls: at most this many of the
# first ones, and at most this many letters wide together.
_FIRST_COLUMNS, _FIRST_LENGTH = 4, 40
# In em, which is the same for a bold heading.
_LETTER, _PADDING = 0.6, 1.4


def to_html(sections: Sequence[tables.Section], opening: tables.Opening) -> str:
  """Returns the report as a page with its figures embedded."""
  lines = [html_page.tag("h1", render.TITLE)]
  for name, blocks in render.parts(sections, opening):
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
  return html_page.page(render.TITLE, lines, _STYLE)


def _html_table(table: tables.Table) -> list[str]:
  rows = render.cells_of(table)
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
  """Returns the class of each column, and the position of those that stay.

  A column that stays has to know how wide those before it are, so each of them
  is given a width: that of its longest cell or word in the title.
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
