"""Self-contained HTML pages: their figures are embedded."""

import base64
from collections.abc import Iterable
import html


def page(title: str, lines: Iterable[str], style: str) -> str:
  """Returns a page.

  Args:
    title: Its title.
    lines: Its body, as HTML.
    style: Its CSS.
  """
  return "\n".join(
    [
      "<!DOCTYPE html>",
      '<html lang="en">',
      "<head>",
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      tag("title", title),
      f"<style>{style}</style>",
      "</head>",
      "<body>",
      *lines,
      "</body>",
      "</html>",
      "",
    ]
  )


def tag(name: str, text: str, kind: str = "") -> str:
  """Returns an element; `text` is escaped, `kind` is its attributes."""
  return f"<{name}{kind}>{html.escape(text)}</{name}>"


def figure(svg: bytes, caption: str) -> str:
  """Returns a figure with its caption."""
  data = base64.b64encode(svg).decode("ascii")
  alt = html.escape(caption)
  return (
    f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
    f"<figcaption>{alt}</figcaption></figure>"
  )
