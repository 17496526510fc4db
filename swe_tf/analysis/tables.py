"""Tables as data: columns, rows, and the notes needed to read them.

A cell is None where nothing was measured. `render` writes tables; `rows`,
`paper_sections` and `run_sections` fill them.
"""

from collections.abc import Sequence
import dataclasses

from swe_tf.analysis import groups

Cell = None | str | int | float | groups.Statistic
# The cells of a row by the keys of columns.
Row = dict[str, Cell]


@dataclasses.dataclass(frozen=True)
class Column:
  """A column.

  Attributes:
    key: Its name in CSV.
    title: Its title for readers.
    form: The format of its numbers.
    spread: Whether it holds statistics, which are three columns in CSV.
  """

  key: str
  title: str
  form: str = ""
  spread: bool = False

  def show(self, cell: Cell) -> str:
    """Returns a cell for readers; empty if nothing was measured."""
    if cell is None:
      return ""
    if isinstance(cell, groups.Statistic):
      shown = format(cell.mean, self.form)
      if cell.std is None:
        return shown
      return f"{shown} ± {format(cell.std, self.form.lstrip('+'))}"
    return cell if isinstance(cell, str) else format(cell, self.form)


@dataclasses.dataclass(frozen=True)
class Table:
  """A table of one setting.

  Attributes:
    title: The setting.
    columns: The columns.
    rows: The rows.
    notes: What a reader needs to know about this table.
  """

  title: str
  columns: Sequence[Column]
  rows: Sequence[Row]
  notes: Sequence[str] = ()


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
  """A part of the report. One without tables and figures says why.

  Attributes:
    name: The name of its CSV file, without the extension.
    title: Its title.
    text: What it shows, and what a reader needs to know about it.
    absent: The text to show instead if there is nothing to show.
    tables: Tables that have the same columns.
    figures: Figures.
  """

  name: str
  title: str
  text: Sequence[str]
  absent: str
  tables: Sequence[Table] = ()
  figures: Sequence[Figure] = ()

  @property
  def is_empty(self) -> bool:
    return not any(table.rows for table in self.tables) and not self.figures


@dataclasses.dataclass(frozen=True)
class Opening:
  """What a report begins with.

  Attributes:
    verdict: What the runs show, in a sentence or two.
    settings: The same for each setting, if there are several.
    runs: A sentence that counts the runs and the settings.
    figures: Figures that show the verdict.
  """

  verdict: str
  settings: Sequence[str]
  runs: str
  figures: Sequence[Figure] = ()
