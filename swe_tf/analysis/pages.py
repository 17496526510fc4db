"""Pages from the templates in `templates/`: HTML that needs no other file.

A template gets data, never markup. What it shows is escaped: by Jinja in HTML,
by the filter `md` in Markdown. `page.html.jinja` holds the one style sheet.
"""

import base64
import functools
import re
from typing import Any

import jinja2


@functools.cache
def _environment() -> jinja2.Environment:
  environment = jinja2.Environment(
    loader=jinja2.PackageLoader("swe_tf.analysis"),
    autoescape=lambda name: ".html" in (name or ""),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
  )
  environment.filters |= {"md": to_markdown, "data_uri": data_uri}
  return environment


def render(template: str, **data: Any) -> str:
  """Returns a page.

  Args:
    template: The name of a file in `templates/`.
    **data: What it shows.
  """
  return _environment().get_template(template).render(**data)


def to_markdown(text: Any) -> str:
  r"""Returns text that Markdown shows as it is, on one line.

  >>> print(to_markdown("[x](javascript:y) a|b <i>"))
  \[x\](javascript:y) a\|b &lt;i&gt;
  """
  line = " ".join(str(text).split())
  line = re.sub(r"([\\`*\[\]|~])", r"\\\1", line)
  return line.replace("<", "&lt;").replace(">", "&gt;")


def data_uri(svg: bytes) -> str:
  """Returns a figure as an address that holds it."""
  return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"
