"""Tables for readers: which columns of a frame are shown, and how.

A cell is None where nothing was measured. Templates turn `Table.shown` into
HTML and Markdown; `to_csv` has all columns at full precision.
"""

from collections.abc import Sequence
import dataclasses
import functools
import math
from typing import Any

import pandas as pd

from swe_tf.analysis import statistics


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a frame.

  Attributes:
    key: Its name in the frame and in CSV.
    title: Its title for readers.
    form: The format of its numbers.
    spread: Whether it holds intervals, which are four columns in CSV.
  """

  key: str
  title: str
  form: str = ""
  spread: bool = False

  def show(self, cell: Any) -> str:
    """Returns a cell for readers; empty if nothing was measured."""
    if isinstance(cell, statistics.Interval):
      shown = format(cell.mean, self.form)
      if cell.n < 2:
        return shown
      # Student's interval is symmetric.
      return f"{shown} ± {format(cell.high - cell.mean, self.form.strip('+'))}"
    if cell is None or cell != cell:  # NaN
      return ""
    return cell if isinstance(cell, str) else format(cell, self.form)


@dataclasses.dataclass(frozen=True)
class Table:
  """A table of one setting.

  Attributes:
    title: The setting; may be empty.
    columns: The columns.
    frame: The rows.
  """

  title: str
  columns: Sequence[Column]
  frame: pd.DataFrame

  @functools.cached_property
  def shown(self) -> pd.DataFrame:
    """The table as text, without the columns in which nothing was measured."""
    cells = {
      column.title: [column.show(cell) for cell in self.frame[column.key]]
      for column in self.columns
      if column.key in self.frame
    }
    return pd.DataFrame({k: v for k, v in cells.items() if any(v)})


@dataclasses.dataclass(frozen=True)
class Figure:
  """A drawn figure.

  Attributes:
    name: The name of its files, without the extension.
    caption: What it shows.
    png: The PNG file.
    svg: The SVG file.
  """

  name: str
  caption: str
  png: bytes
  svg: bytes


@dataclasses.dataclass(frozen=True)
class Section:
  """A part of a report.

  Attributes:
    name: The name of its CSV file, without the extension.
    title: Its title.
    text: What it shows, and what a reader needs to know about it.
    tables: Tables that have the same columns.
    figures: Figures.
  """

  name: str
  title: str
  text: Sequence[str]
  tables: Sequence[Table] = ()
  figures: Sequence[Figure] = ()


def by_setting(frame: pd.DataFrame, columns: Sequence[Column]) -> list[Table]:
  """Returns a table for each value of `setting`."""
  if frame.empty:
    return []
  return [
    Table(title, columns, rows)
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
        values = [_finite(getattr(cell, name, None)) for cell in cells]
        # As objects: a missing number makes no floats of integers.
        part[f"{column.key}_{name}"] = pd.Series(values, part.index, object)
    parts.append(part)
  return pd.concat(parts).to_csv(index=False, lineterminator="\n")


def _finite(value: Any) -> Any:
  """Returns None for the ends of a single seed's interval."""
  return None if value is None or not math.isfinite(value) else value
