"""Pages: what a report is made of, and the templates that show it.

A template in `templates/` gets data, never markup. What it shows is escaped: by
Jinja in HTML, by the filter `md` in Markdown. `page.html.jinja` holds the one
style sheet. A cell is None where nothing was measured; `to_csv` has all columns
of a section at full precision.
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

from swe_tf.analysis import statistics
from swe_tf.analysis import style

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
class Table:
  """A frame of a section; its title is the setting, or empty."""

  title: str
  section: str
  frame: pd.DataFrame

  @property
  def columns(self) -> list[Any]:
    """Those of its section: `key`, `title`, `form`, `spread`."""
    return list(_COLUMNS[_COLUMNS.section == self.section].itertuples())

  @functools.cached_property
  def shown(self) -> pd.DataFrame:
    """The table as text, without the columns in which nothing was measured."""
    cells = {
      column.title: [show(cell, column.form) for cell in self.frame[column.key]]
      for column in self.columns
      if column.key in self.frame
    }
    return pd.DataFrame({k: v for k, v in cells.items() if any(v)})


@dataclasses.dataclass(frozen=True)
class Section:
  """A part of a report; `templates/text.jinja` has its title and its words."""

  name: str
  tables: Sequence[Table] = ()
  figures: Sequence[style.Figure] = ()
  text: Sequence[str] = ()


def by_setting(frame: pd.DataFrame, section: str) -> list[Table]:
  """Returns a table for each value of `setting`."""
  if frame.empty:
    return []
  return [
    Table(title, section, rows)
    for title, rows in frame.groupby("setting", sort=False)
  ]


def to_csv(section: Section) -> str:
  """Returns all tables of a section as one CSV, at full precision.

  An interval takes four columns: mean, low, high and n. The first column is the
  title of the table.
  """
  parts = []
  for table in section.tables:
    part = pd.DataFrame({"setting": table.title}, index=table.frame.index)
    for column in table.columns:
      cells = table.frame.get(column.key, pd.Series(None, part.index, object))
      if not column.spread:
        part[column.key] = cells
        continue
      for name in ("mean", "low", "high", "n"):
        values = [getattr(cell, name, None) for cell in cells]
        # The interval of a single seed has no ends.
        values = [v if v is None or math.isfinite(v) else None for v in values]
        # As objects: a missing number makes no floats of integers.
        part[f"{column.key}_{name}"] = pd.Series(values, part.index, object)
    parts.append(part)
  return pd.concat(parts).to_csv(index=False, lineterminator="\n")


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
  environment.filters |= {"md": to_markdown, "data_uri": _data_uri}
  return environment.get_template(template).render(**data)


def to_markdown(text: Any) -> str:
  r"""Returns text that Markdown shows as it is, on one line.

  >>> print(to_markdown("[x](javascript:y) a|b <i>"))
  \[x\](javascript:y) a\|b &lt;i&gt;
  """
  line = " ".join(str(text).split())
  line = re.sub(r"([\\`*\[\]|~])", r"\\\1", line)
  return line.replace("<", "&lt;").replace(">", "&gt;")


def _data_uri(svg: bytes) -> str:
  return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"
