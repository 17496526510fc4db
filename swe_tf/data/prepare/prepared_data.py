"""Reads a directory that `swe prepare squad` or `swe prepare glue` wrote."""

from collections.abc import Mapping, Sequence
import dataclasses
import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.data import fingerprint
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest


@dataclasses.dataclass(frozen=True)
class Split:
  """A file of records; for SQuAD, `size` counts windows, not questions."""

  name: str
  path: str
  size: int
  labelled: bool


@dataclasses.dataclass(frozen=True)
class PreparedData:
  """A directory of records; `meta` is the content of its manifest."""

  directory: files.Path
  meta: Mapping[str, Any]
  splits: Mapping[str, Split]

  @property
  def path(self) -> files.Path:
    return self.directory / manifest.FILE_NAME

  @property
  def task(self) -> str:
    return self.meta["task"]  # Of SQUAD_TASKS, or the name of a GLUE task.

  @property
  def is_squad(self) -> bool:
    return self.task in manifest.SQUAD_TASKS

  @property
  def train(self) -> Split | None:
    return self.splits.get("train")

  @property
  def fingerprint(self) -> str:
    """The identity of the data; see `swe_tf.data.fingerprint`."""
    names = [split.path for split in self.splits.values()]
    answers = self.directory / "eval.json"
    some = [answers] if answers.exists() else []
    return fingerprint.fingerprint([self.path, *names, *some])

  def splits_of(self, *roles: str) -> Sequence[Split]:
    """Returns the splits whose names start with one of `roles`, in order."""
    return [self.splits[key] for key in self.splits if key.startswith(roles)]


def read_prepared_data(data_dir: files.PathLike) -> PreparedData:
  """Reads a directory's manifest and checks that its files are as it says."""
  directory = files.as_path(data_dir)
  path = directory / manifest.FILE_NAME
  meta = manifest.load(directory) or {}
  if meta.get("kind") not in (manifest.GLUE, manifest.SQUAD):
    raise errors.UsageError(
      f"{data_dir or 'data_dir'} has no {manifest.FILE_NAME} of GLUE or SQuAD; "
      "name a directory that `swe prepare squad` or `swe prepare glue` wrote."
    )
  if meta["kind"] == manifest.GLUE and "metric_type" in meta:
    task = glue_tasks.find_task(str(meta.get("task")))
    if meta["metric_type"] != task.model_garden_metric:
      raise errors.UsageError(
        f"{path}: metric_type is {meta['metric_type']!r:.60}, but that of "
        f"{task.name} is {task.model_garden_metric}; prepare the data again."
      )
  splits = {}
  for name, split in meta["splits"].items():
    # Neither may lead out of its directory: predictions are written to a file
    # with the name of the split.
    for given in (name, split["file"]):
      if not re.fullmatch(r"\w[\w.-]*", str(given)):
        raise errors.UsageError(
          f"{path}: {given!r} is not the name of a split or of a file beside "
          "it; prepare the data again."
        )
    file = directory / split["file"]
    if not file.exists():
      raise errors.UsageError(
        f"{file} is not there, but {path} lists it; prepare the data again."
      )
    files.check_regular(file)
    answers = [directory / "eval.json"] if name == "eval" else []
    manifest.check_unchanged(split, file, *answers)
    labelled = split.get("labelled", True)  # SQuAD's always are.
    splits[name] = Split(name, str(file), split["size"], labelled)
  return PreparedData(directory, meta, splits)
