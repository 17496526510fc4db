"""Pages: the sections of a report, and the templates that show them.

A template in `templates/` gets data, never markup. What it shows is escaped: by
Jinja in HTML, by the filter `md` in Markdown. `page.html.jinja` holds the one
style sheet, `text.jinja` the titles and the words of sections.
"""

import base64
from collections.abc import Sequence
import dataclasses
import functools
from importlib import resources
import math
import re
from typing import Any

import jinja2
import pandas as pd

from swe_tf.analysis import figures as figures_lib
from swe_tf.analysis import statistics

# The columns of each section; a `spread` one holds intervals, 4 columns in CSV.
with (resources.files(__package__) / "report_columns.csv").open() as _file:
  _COLUMNS = pd.read_csv(_file, keep_default_na=False, dtype={"spread": bool})


def show(cell: Any, form: str) -> str:
  """Returns a cell for readers; empty if nothing was measured."""
  if isinstance(cell, statistics.Interval):
    shown = format(cell.mean, form)
    # Student's interval is symmetric.
    half = format(cell.high - cell.mean, form.strip("+"))
    return f"{shown} ± {half}" if cell.n > 1 else shown
  if cell is None or cell != cell:  # NaN
    return ""
  return cell if isinstance(cell, str) else format(cell, form)


@dataclasses.dataclass(frozen=True)
class Section:
  """A part of a report: a table for each value of `setting`, and figures.

  `name` is that of its CSV file; `text` is what only these runs have to say.
  """

  name: str
  frame: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
  figures: Sequence[figures_lib.Figure] = ()
  text: Sequence[str] = ()

  @property
  def columns(self) -> list[Any]:
    return list(_COLUMNS[_COLUMNS.section == self.name].itertuples())

  @functools.cached_property
  def tables(self) -> list[tuple[str, pd.DataFrame]]:
    """The tables as text, without columns in which nothing was measured."""
    found: list[tuple[str, pd.DataFrame]] = []
    if self.frame.empty:
      return found
    for title, rows in self.frame.groupby("setting", sort=False):
      cells = {
        column.title: [show(cell, column.form) for cell in rows[column.key]]
        for column in self.columns
        if column.key in rows
      }
      shown = pd.DataFrame({k: v for k, v in cells.items() if any(v)})
      found.append((title, shown))
    return found

  def to_csv(self) -> str:
    """Returns all columns at full precision; an interval takes four."""
    made = self.frame[["setting"]].copy()
    for column in self.columns:
      cells = self.frame.get(column.key, pd.Series(None, made.index, object))
      if not column.spread:
        made[column.key] = cells
        continue
      for name in ("mean", "low", "high", "n"):
        values = [getattr(cell, name, None) for cell in cells]
        # The interval of a single seed has no ends.
        values = [v if v is None or math.isfinite(v) else None for v in values]
        # As objects: a missing number makes no floats of integers.
        made[f"{column.key}_{name}"] = pd.Series(values, made.index, object)
    return made.to_csv(index=False, lineterminator="\n")


def render(template: str, **data: Any) -> str:
  """Returns a page from a file in `templates/`."""
  environment = jinja2.Environment(
    loader=jinja2.PackageLoader("swe_tf.analysis"),
    autoescape=lambda name: ".html" in (name or ""),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
  )
  environment.filters |= {"md": to_markdown, "base64": base64.b64encode}
  return environment.get_template(template).render(**data)


def to_markdown(text: Any) -> str:
  r"""Returns text that Markdown shows as it is, on one line.

  >>> print(to_markdown("[x](javascript:y) a|b <i>"))
  \[x\](javascript:y) a\|b &lt;i&gt;
  """
  line = " ".join(str(text).split())
  line = re.sub(r"([\\`*\[\]|~])", r"\\\1", line)
  return line.replace("<", "&lt;").replace(">", "&gt;")
