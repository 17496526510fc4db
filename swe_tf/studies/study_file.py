"""A study: its file, and the runs that it stands for. Imports no TensorFlow.

    experiment: swe/bert_pretraining_text
    config_files: [../small/24x64.yaml]      # beside this file
    overrides: {trainer: {train_steps: 1000}}
    metrics: [validation_loss, masked_lm_accuracy]
    axes:
      method: [baseline, swe]
      units: [1x24, 2x12]
      seed: [0, 1, 2]

The runs are all combinations of the axes' values. `axes` may be a list of such
tables: the runs are then the combinations of each table, without repetitions.

Instead of `axes` a file may have `tuning` (`tuning.py`): arms whose learning
rates are tuned alike. Which runs come next then depends on the results.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
import dataclasses
import itertools
import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.studies import axes as axes_lib
from swe_tf.studies import tuning as tuning_lib

_KEYS = ("experiment", "config_files", "overrides", "metrics", "axes", "tuning")
_KINDS: Mapping[str, tuple[type, str]] = {
  "experiment": (str, "a name"),
  "config_files": (list, "a list of names, such as [a, b]"),
  "metrics": (list, "a list of names, such as [a, b]"),
  "overrides": (dict, "a table"),
}
_METRICS = ("validation_loss", "masked_lm_accuracy")


@dataclasses.dataclass(frozen=True)
class Run:
  """A run of a study.

  Attributes:
    name: The name of its directory.
    point: Its value on each axis that matters to it.
    own: The overrides from axes that only this study defines.
  """

  name: str
  point: Mapping[str, Any]
  own: Sequence[Mapping[str, Any]] = ()


@dataclasses.dataclass(frozen=True)
class Study:
  """The content of a study's file.

  Attributes:
    experiment: The name of the base experiment.
    config_files: Files that override it, first to last.
    overrides: Overrides to apply after them.
    metrics: Names of validation scalars; the first is the main one.
    runs: The runs, in order; with `tuning`, those that are known so far.
    tuning: How the arms are tuned; None for a study of axes.
  """

  experiment: str
  config_files: Sequence[str]
  overrides: Mapping[str, Any]
  metrics: Sequence[str]
  runs: Sequence[Run]
  tuning: tuning_lib.Tuning | None = None

  def without_runs(self, names: Container[str]) -> "Study":
    runs = tuple(run for run in self.runs if run.name not in names)
    return dataclasses.replace(self, runs=runs)

  def with_next_runs(self, losses: Mapping[str, float]) -> "Study | None":
    """Returns the study with the next runs added; None if there are none.

    Args:
      losses: The final losses so far, by the name of the run; infinity for a
        run that failed.
    """
    if self.tuning is None:
      return None
    known = {
      tuning_lib.Point(**run.point): losses[run.name]
      for run in self.runs
      if run.name in losses
    }
    points = tuning_lib.next_points(self.tuning, known)
    return self.with_points(points) if points else None

  def run_of(self, point: tuning_lib.Point) -> Run:
    """Returns the run of a point, whether or not the study has it already."""
    wanted = dataclasses.asdict(point)
    return next(
      run for run in self.with_points([point]).runs if run.point == wanted
    )

  def with_points(self, points: Sequence[tuning_lib.Point]) -> "Study":
    """Returns the study with more runs of its arms."""
    assert self.tuning is not None
    table = {"arm": self.tuning.arms}
    more = [_make_run(dataclasses.asdict(point), table) for point in points]
    return dataclasses.replace(self, runs=_join((*self.runs, *more)))


def read_study(path: str) -> Study:
  """Reads and checks a study's file.

  Raises:
    UsageError: If it cannot be read, or does not describe a study.
  """
  content = yaml_files.read(path)
  if not isinstance(content, dict):
    raise errors.UsageError(f"{path} must be a table with {', '.join(_KEYS)}.")
  unknown = sorted(set(content) - set(_KEYS))
  if unknown:
    raise errors.UsageError(
      f"{path}: unknown key {unknown[0]!r}; "
      + errors.nearest(unknown[0], _KEYS, f"a study has {', '.join(_KEYS)}.")
    )
  if not content.get("experiment"):
    raise errors.UsageError(f"{path}: 'experiment' is missing.")
  for key, (kind, shown) in _KINDS.items():
    value = content.get(key) or kind()
    names = value if kind is list else ()
    if not isinstance(value, kind) or not all(
      isinstance(name, str) for name in names
    ):
      raise errors.UsageError(f"{path}: {key} ({value!r}) must be {shown}.")
  if bool(content.get("axes")) == bool(content.get("tuning")):
    raise errors.UsageError(f"{path}: it must have either 'axes' or 'tuning'.")
  config_files = []
  for name in content.get("config_files") or ():
    config_file = files.as_path(path).parent / name
    if not config_file.is_file():
      raise errors.UsageError(f"{path}: config_files: no file {config_file}.")
    config_files.append(str(config_file))
  study = Study(
    experiment=content["experiment"],
    config_files=tuple(config_files),
    overrides=content.get("overrides") or {},
    metrics=tuple(content.get("metrics") or _METRICS),
    runs=plan_runs(content["axes"], path) if content.get("axes") else (),
  )
  if study.runs:
    return study
  return tuned(study, _with_arms_of_file(content["tuning"], path), path)


def _with_arms_of_file(table: Any, path: str) -> Any:
  """Adds the arms of `arms_file`, which studies may share, to a tuning."""
  if not isinstance(table, dict) or "arms_file" not in table:
    return table
  table = dict(table)
  arms_file = files.as_path(path).parent / str(table.pop("arms_file"))
  if not arms_file.is_file():
    raise errors.UsageError(f"{path}: tuning.arms_file: no file {arms_file}.")
  arms = yaml_files.read(arms_file)
  if not isinstance(arms, dict):
    raise errors.UsageError(f"{arms_file} must be a table of arms.")
  return table | {"arms": {**arms, **(table.get("arms") or {})}}


def tuned(study: Study, table: Any, path: str = "the study") -> Study:
  """Returns a study with the first runs of a `tuning`.

  Raises:
    UsageError: If the table does not describe a tuning.
  """
  study = dataclasses.replace(
    study, tuning=tuning_lib.from_table(table, path), runs=()
  )
  first = study.with_next_runs({})
  assert first is not None
  return first


def plan_runs(axes: Any, path: str = "the study") -> tuple[Run, ...]:
  """Returns the runs of all combinations, each once.

  Args:
    axes: A table of axes, or a list of tables.
    path: Where they come from, for error messages.

  Raises:
    UsageError: If an axis has no values or a wrong one.
  """
  runs = []
  for table in axes if isinstance(axes, list) else [axes]:
    if not isinstance(table, dict) or not table:
      raise errors.UsageError(f"{path}: axes must be a table, got {table!r}.")
    for axis, values in table.items():
      _check_axis(axis, values, path)
    for values in itertools.product(*table.values()):
      point = axes_lib.without_ignored(dict(zip(table, values)))
      runs.append(_make_run(point, table))
  return _join(runs)


def _join(runs: Iterable[Run]) -> tuple[Run, ...]:
  """Returns the runs without repetitions.

  Raises:
    UsageError: If two that differ would have the same directory.
  """
  joined: dict[str, Run] = {}
  for run in runs:
    known = joined.setdefault(run.name, run)
    if known.point != run.point:
      raise errors.UsageError(
        f"{dict(known.point)} and {dict(run.point)} would both be the run "
        f"{run.name}; rename one of the values."
      )
  return tuple(joined.values())


def _check_axis(axis: str, values: Any, path: str) -> None:
  is_table = isinstance(values, dict) and axis not in axes_lib.KNOWN
  if not values or not (isinstance(values, list) or is_table):
    raise errors.UsageError(
      f"{path}: axes.{axis} must be a list of values, got {values!r}."
    )
  if is_table:
    return
  if axis not in axes_lib.KNOWN:
    raise errors.UsageError(
      f"{path}: axes.{axis} is not one of {', '.join(axes_lib.KNOWN)}, so it "
      "must be a table that maps each value's name to its overrides."
    )
  for value in values:
    axes_lib.check_value(axis, value)


def _make_run(point: Mapping[str, Any], table: Mapping[str, Any]) -> Run:
  order = [a for a in point if a not in axes_lib.KNOWN]
  order += [a for a in axes_lib.KNOWN if a in point]
  labels = [axes_lib.label(axis, point[axis]) for axis in order]
  # It becomes a directory, which must not be `..` or hidden.
  name = re.sub(r"[^\w.+-]+|^\.+", "_", "-".join(labels))
  own = tuple(
    table[axis][point[axis]] or {}
    for axis in point
    if axis not in axes_lib.KNOWN
  )
  return Run(name, point, own)
