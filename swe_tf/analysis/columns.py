"""The results of `swe finetune --tasks` on any checkpoint, as a section.

The rows are those of the paper's tables. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses

from swe_tf import files
from swe_tf.analysis import found_runs
from swe_tf.analysis import tables
from swe_tf.scoring import column as column_lib

_COLUMNS = (
  tables.Column("score", "score"),
  tables.Column("dev", "dev (%)", ".2f"),
  tables.Column("test", "test (%)", ".2f"),
)


@dataclasses.dataclass(frozen=True)
class Column:
  """A directory of `swe finetune --tasks`.

  Attributes:
    name: Its name for readers; see `found_runs.directories_with`.
    checkpoint: The checkpoint that was fine-tuned.
    init: `checkpoint` if its weights were used, or `random`.
    dev: The scores on the dev sets by row, with the averages.
  """

  name: str
  checkpoint: files.Path
  init: str
  dev: Mapping[str, float]


def read_columns(roots: Sequence[files.PathLike]) -> list[Column]:
  """Reads all directories of `swe finetune --tasks` that finished."""
  found = []
  for name, directory in found_runs.directories_with(
    roots, column_lib.FILE_NAME
  ):
    content = files.read_json(directory / column_lib.FILE_NAME)
    found.append(
      Column(
        name,
        files.as_path(content["checkpoint"]),
        content["init"],
        content["scores"],
      )
    )
  return found


def section(
  columns: Sequence[Column], site: Mapping[str, Mapping[str, float]]
) -> tables.Section:
  """The columns of `swe finetune --tasks`, in the rows of the paper."""
  made = []
  for each in columns:
    test = dict(site.get(each.name, {}))
    same = {
      row: value
      for row, value in each.dev.items()
      if column_lib.dev_name(row) == row
    }
    test = column_lib.with_averages(same | test)
    rows: list[tables.Row] = [
      {
        "score": row,
        "dev": None if row == column_lib.AX else each.dev.get(row),
        "test": None if row.lower().startswith("squad") else test.get(row),
      }
      for row in column_lib.ROWS
    ]
    title = f"{each.name}: {each.checkpoint.name}, {each.init} weights"
    made.append(tables.Table(title, _COLUMNS, rows))
  return tables.Section(
    "columns",
    "Columns of swe finetune --tasks",
    [
      "The rows of the paper's tables, which report SQuAD's dev sets and "
      "GLUE's test sets. AX is Matthews' correlation. Test scores come from "
      "the benchmark's site, through --site_scores; AX is scored here if its "
      "labels are available."
    ],
    "No directory of swe finetune --tasks.",
    made,
  )
