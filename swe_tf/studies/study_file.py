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
import math
import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.studies import axes as axes_lib
from swe_tf.studies import tuning as tuning_lib

# Of each key, the type and how to write it.
_KEYS: Mapping[str, tuple[tuple[type, ...], str]] = {
  "experiment": ((str,), "a name"),
  "config_files": ((list,), "a list of names, such as [a, b]"),
  "overrides": ((dict,), "a table"),
  "metrics": ((list,), "a list of names, such as [a, b]"),
  "axes": ((dict, list), "a table, or a list of tables"),
  "tuning": ((dict,), "a table with arms, learning_rates and seeds"),
}
_METRICS = ("validation_loss", "masked_lm_accuracy")
_MOST_RUNS = 10_000
_LONGEST_NAME = 200  # Bytes; file systems have 255, and we add to it.


@dataclasses.dataclass(frozen=True)
class PlannedRun:
  """A run of a study: the name of its directory, its value on each axis.

  `own` has the overrides from axes that only this study defines.
  """

  name: str
  point: Mapping[str, Any]
  own: Sequence[Mapping[str, Any]] = ()


@dataclasses.dataclass(frozen=True)
class Study:
  """The content of a study's file: an experiment, and what overrides it.

  Of the metrics, names of validation scalars, the first is the main one. With
  `tuning`, the runs are those that are known so far.
  """

  experiment: str
  config_files: Sequence[str]
  overrides: Mapping[str, Any]
  metrics: Sequence[str]
  runs: Sequence[PlannedRun]
  tuning: tuning_lib.Tuning | None = None

  def without_runs(self, names: Container[str]) -> "Study":
    runs = tuple(run for run in self.runs if run.name not in names)
    return dataclasses.replace(self, runs=runs)

  def with_next_runs(self, losses: Mapping[str, float]) -> "Study | None":
    """Returns the study with the next runs added; None if there are none.

    `losses` are the final ones so far, by run; infinity for one that failed.
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

  def run_of(self, point: tuning_lib.Point) -> PlannedRun:
    """Returns the run of a point, whether or not the study has it already."""
    assert self.tuning is not None
    return _make_run(dataclasses.asdict(point), {"arm": self.tuning.arms})

  def with_points(self, points: Sequence[tuning_lib.Point]) -> "Study":
    runs = _join((*self.runs, *map(self.run_of, points)))
    return dataclasses.replace(self, runs=runs)


def read_study(path: str) -> Study:
  """Reads a study's file; raises `UsageError` if it does not describe one."""
  content = yaml_files.read(path)
  if not isinstance(content, dict):
    raise errors.UsageError(f"{path} must be a table with {', '.join(_KEYS)}.")
  for key, value in content.items():
    if key not in _KEYS:
      raise errors.UsageError(
        f"{path}: unknown key {key!r}; "
        + errors.nearest(key, _KEYS, f"a study has {', '.join(_KEYS)}.")
      )
    kinds, shown = _KEYS[key]
    names = value if key in ("config_files", "metrics") and value else ()
    if (value and not isinstance(value, kinds)) or not all(
      isinstance(name, str) for name in names
    ):
      raise errors.UsageError(f"{path}: {key} ({value!r}) must be {shown}.")
  if not content.get("experiment"):
    raise errors.UsageError(f"{path}: 'experiment' is missing.")
  if bool(content.get("axes")) == bool(content.get("tuning")):
    raise errors.UsageError(f"{path}: it must have either 'axes' or 'tuning'.")
  names = content.get("config_files") or ()
  study = Study(
    experiment=content["experiment"],
    config_files=tuple(_beside(path, "config_files", name) for name in names),
    overrides=content.get("overrides") or {},
    metrics=tuple(content.get("metrics") or _METRICS),
    runs=plan_runs(content["axes"], path) if content.get("axes") else (),
  )
  if study.runs:
    return study
  table = dict(content["tuning"])
  if "arms_file" in table:  # Studies may have arms in common.
    arms_file = _beside(path, "tuning.arms_file", str(table.pop("arms_file")))
    arms = yaml_files.read(arms_file)
    if not isinstance(arms, dict):
      raise errors.UsageError(f"{arms_file} must be a table of arms.")
    table["arms"] = {**arms, **(table.get("arms") or {})}
  return tuned(study, table, path)


def _beside(path: str, key: str, name: str) -> str:
  found = files.as_path(path).parent / name
  if not found.is_file():
    raise errors.UsageError(f"{path}: {key}: no file {found}.")
  return str(found)


def tuned(study: Study, table: Any, path: str = "the study") -> Study:
  """Returns a study with the first runs of a `tuning`."""
  tuning = tuning_lib.from_table(table, path)
  study = dataclasses.replace(study, tuning=tuning, runs=())
  return study.with_points(tuning_lib.next_points(tuning, {}))


def plan_runs(axes: Any, path: str = "the study") -> tuple[PlannedRun, ...]:
  """Returns the runs of all combinations, each once."""
  runs: list[PlannedRun] = []
  for table in axes if isinstance(axes, list) else [axes]:
    if not isinstance(table, dict) or not table:
      raise errors.UsageError(f"{path}: axes must be a table, got {table!r}.")
    for axis, values in table.items():
      is_known = axis in axes_lib.KNOWN
      if not values or not isinstance(values, list if is_known else dict):
        wanted, end = "a list of values", "."
        if not is_known:
          wanted = "a table of overrides by name"
          end = f"only {', '.join(axes_lib.KNOWN)} take lists."
          end = "; " + errors.nearest(axis, axes_lib.KNOWN, end, 0.75)
        raise errors.UsageError(
          f"{path}: axes.{axis} must be {wanted}, got {values!r}{end}"
        )
      for value in values if is_known else ():
        axes_lib.check_value(axis, value)
    count = len(runs) + math.prod(map(len, table.values()))
    if count > _MOST_RUNS:
      raise errors.UsageError(
        f"{path}: axes have {count:,} combinations, more than {_MOST_RUNS:,}; "
        "divide them into several studies."
      )
    for values in itertools.product(*table.values()):
      point = axes_lib.without_ignored(dict(zip(table, values)))
      runs.append(_make_run(point, table))
  return _join(runs)


def _join(runs: Iterable[PlannedRun]) -> tuple[PlannedRun, ...]:
  """Returns the runs without repetitions; refuses equal names of others."""
  joined: dict[str, PlannedRun] = {}
  for run in runs:
    if not 0 < len(run.name.encode()) <= _LONGEST_NAME:
      raise errors.UsageError(
        f"{dict(run.point)!s:.60} would be the run {run.name[:60]!r}, which is "
        "no name for a directory; rename the values."
      )
    # Some file systems do not tell upper from lower case.
    known = joined.setdefault(run.name.casefold(), run)
    if known != run:
      case = " where case does not count" * (known.name != run.name)
      raise errors.UsageError(
        f"{dict(known.point)} and {dict(run.point)} would both be the run "
        f"{run.name}{case}; rename one of the values."
      )
  return tuple(joined.values())


def _make_run(point: Mapping[str, Any], table: Mapping[str, Any]) -> PlannedRun:
  own = [axis for axis in point if axis not in axes_lib.KNOWN]
  order = own + [axis for axis in axes_lib.KNOWN if axis in point]
  labels = [axes_lib.label(axis, point[axis]) for axis in order]
  # It becomes a directory, which must not be `..` or hidden.
  name = re.sub(r"[^\w.+-]+|^\.+", "_", "-".join(labels))
  overrides = tuple(table[axis][point[axis]] or {} for axis in own)
  return PlannedRun(name, point, overrides)
