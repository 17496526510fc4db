"""What `swe prepare squad` and `swe prepare glue` left in a directory.

The numbers that nobody should type come from its `meta.json`. Imports no
TensorFlow, so that a fault is told at once.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Any

from swe_tf import errors
from swe_tf import files

SQUAD_TASKS = {"squad_v1.1": "1.1", "squad_v2.0": "2.0"}


@dataclasses.dataclass(frozen=True)
class Split:
  """A file of records.

  Attributes:
    name: Such as `train` or `dev_matched`.
    path: The TFRecord file.
    size: The number of records: for SQuAD of windows, not of questions.
    labelled: Whether there are right answers to score or to learn.
  """

  name: str
  path: str
  size: int
  labelled: bool


@dataclasses.dataclass(frozen=True)
class PreparedData:
  """A directory of records.

  Attributes:
    directory: The directory.
    meta: The content of its `meta.json`; `docs/scoring.md` lists the keys.
    splits: The files of records by name.
  """

  directory: pathlib.Path
  meta: Mapping[str, Any]
  splits: Mapping[str, Split]

  @property
  def task(self) -> str:
    """The task: `squad_v1.1`, `squad_v2.0` or the name of a GLUE task."""
    return self.meta["task"]

  @property
  def is_squad(self) -> bool:
    return self.task in SQUAD_TASKS

  @property
  def train(self) -> Split | None:
    """The training split, if it was prepared."""
    return self.splits.get("train")

  def splits_of(self, *roles: str) -> Sequence[Split]:
    """Returns the splits whose names start with one of `roles`, in order."""
    return [
      split for split in self.splits.values() if split.name.startswith(roles)
    ]


def read_prepared_data(data_dir: files.PathLike) -> PreparedData:
  """Reads the `meta.json` of a directory and looks for its files.

  Args:
    data_dir: What `swe prepare` wrote.

  Raises:
    UsageError: If the directory is not one of those, or not whole.
  """
  directory = pathlib.Path(data_dir)
  path = directory / "meta.json"
  if not path.exists():
    raise errors.UsageError(
      f"{data_dir or 'data_dir'} has no meta.json; name a directory that "
      "`swe prepare squad` or `swe prepare glue` wrote."
    )
  meta = files.read_json(path)
  if not isinstance(meta, dict) or "task" not in meta:
    raise errors.UsageError(f'{path}:1: no "task"; is it from `swe prepare`?')
  if meta["task"] in SQUAD_TASKS:
    splits = [
      Split(
        name,
        str(directory / f"{name}.tf_record"),
        meta[f"{name}_data_size"],
        labelled=True,
      )
      for name in ("train", "eval")
      if f"{name}_data_size" in meta
    ]
  else:
    splits = [
      Split(
        name, str(directory / split["file"]), split["size"], split["labelled"]
      )
      for name, split in meta["splits"].items()
    ]
  for split in splits:
    if not pathlib.Path(split.path).exists():
      raise errors.UsageError(
        f"{split.path} is not there, but {path} lists it; prepare the data "
        "again."
      )
  return PreparedData(directory, meta, {split.name: split for split in splits})
