"""HTML pages that need nothing else: their figures are inside."""

import base64
from collections.abc import Iterable
import html

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; color: #1a1a1a; background: #fff; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 1rem; }
th, td { border: 1px solid #ccc; padding: .25rem .5rem; text-align: left;
  white-space: nowrap; }
th { background: #f2f2f2; white-space: normal; vertical-align: bottom; }
img { max-width: 100%; height: auto; }
figcaption { font-size: 13px; color: #444; }
code, pre { font: 13px/1.6 ui-monospace, monospace; }
pre { background: #f6f6f6; padding: .6rem .8rem; overflow-x: auto; }
"""


def page(title: str, lines: Iterable[str], style: str = "") -> str:
  """Returns a page.

  Args:
    title: Its title.
    lines: Its body, as HTML.
    style: CSS, beyond that of all pages.
  """
  return "\n".join(
    [
      "<!DOCTYPE html>",
      '<html lang="en">',
      "<head>",
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      tag("title", title),
      f"<style>{_STYLE}{style}</style>",
      "</head>",
      "<body>",
      *lines,
      "</body>",
      "</html>",
      "",
    ]
  )


def tag(name: str, text: str, kind: str = "") -> str:
  """Returns an element; `text` is escaped, `kind` is its class."""
  attribute = f' class="{html.escape(kind)}"' if kind else ""
  return f"<{name}{attribute}>{html.escape(text)}</{name}>"


def figure(svg: bytes, caption: str) -> str:
  """Returns a figure with its caption."""
  data = base64.b64encode(svg).decode("ascii")
  alt = html.escape(caption)
  return (
    f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
    f"<figcaption>{alt}</figcaption></figure>"
  )
