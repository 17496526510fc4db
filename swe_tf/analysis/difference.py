"""What differs between two runs, and since when: config, curves, checkpoints.

Values are compared bit for bit. A checkpoint has weights, optimizer slots, and
the rest: steps, the state of dropout and of the data.
"""

from collections.abc import Container, Iterable, Mapping, Set
import dataclasses
import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.analysis import scalars
from swe_tf.modeling import checkpoint_files

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# The folders with the curves of a run.
_CURVES = ("train", "validation")
KINDS = ("weights", "slots", "rest")


@dataclasses.dataclass(frozen=True)
class Part:
  """The variables of one kind in a checkpoint.

  Attributes:
    kind: `weights`, `slots` or `rest`.
    count: How many of them both checkpoints have.
    differ: The names of those that differ, the most different first.
    largest: The largest absolute difference of numbers.
    only: The names that only one checkpoint has.
  """

  kind: str
  count: int
  differ: tuple[str, ...]
  largest: float
  only: tuple[str, ...]

  @property
  def is_equal(self) -> bool:
    return not self.differ and not self.only


@dataclasses.dataclass(frozen=True)
class Difference:
  """What differs between two runs.

  Attributes:
    config: The two values of each field that differs, by name.
    curves: The first step at which a curve differs, with both values, by name;
      None where a run has no value.
    compared_curves: How many curves both have.
    steps: The steps at which both have a checkpoint.
    checkpoint: The parts of the last common checkpoint; empty without one.
    first_checkpoint: The first of these steps at which weights or slots differ.
  """

  config: Mapping[str, tuple[Any, Any]]
  curves: Mapping[str, tuple[int, float | None, float | None]]
  compared_curves: int
  steps: tuple[int, ...]
  checkpoint: tuple[Part, ...]
  first_checkpoint: int | None

  @property
  def first_step(self) -> int | None:
    """The first step at which they are known to differ."""
    found = [step for step, *_ in self.curves.values()]
    if self.first_checkpoint is not None:
      found.append(self.first_checkpoint)
    return min(found, default=None)

  @property
  def is_equal(self) -> bool:
    """Whether nothing differs."""
    return (
      not self.config
      and not self.curves
      and all(part.is_equal for part in self.checkpoint)
    )


def compare(one: files.PathLike, other: files.PathLike) -> Difference:
  """Compares the directories of two runs.

  Raises:
    UsageError: If one of them is not the directory of a run.
  """
  configs = [_read_config(path) for path in (one, other)]
  curves, compared = _compare_curves(one, other)
  ours, theirs = _checkpoints(one), _checkpoints(other)
  steps = tuple(sorted(ours.keys() & theirs.keys()))
  parts: tuple[Part, ...] = ()
  first = None
  for step in steps:
    parts = compare_checkpoints(ours[step], theirs[step])
    if first is None and not all(p.is_equal for p in parts if p.kind != "rest"):
      first = step
  return Difference(
    config=_compare_tables(*configs),
    curves=curves,
    compared_curves=compared,
    steps=steps,
    checkpoint=parts,
    first_checkpoint=first,
  )


def _read_config(directory: files.PathLike) -> dict[str, Any]:
  path = files.as_path(directory) / "params.yaml"
  if not path.exists():
    raise errors.UsageError(
      f"{directory} is not a run: it has no params.yaml. Name the model_dir of "
      "a run."
    )
  return dict(_flatten(yaml_files.read(path)))


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
  if isinstance(value, Mapping) and value:
    return [
      pair
      for key, each in value.items()
      for pair in _flatten(each, f"{prefix}.{key}".lstrip("."))
    ]
  return [(prefix, list(value) if isinstance(value, tuple) else value)]


def _compare_tables(
  one: Mapping[str, Any], other: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
  return {
    name: (one.get(name), other.get(name))
    for name in dict.fromkeys((*one, *other))
    if one.get(name) != other.get(name)
  }


def _compare_curves(
  one: files.PathLike, other: files.PathLike
) -> tuple[dict[str, tuple[int, float | None, float | None]], int]:
  """Returns where curves diverge, and how many were compared."""
  found, count = {}, 0
  for folder in _CURVES:
    ours, theirs = (
      scalars.read_scalars(str(path))
      if (path := files.as_path(run) / folder).is_dir()
      else {}
      for run in (one, other)
    )
    for tag in sorted(ours.keys() & theirs.keys()):
      if _is_time(tag):
        continue
      count += 1
      mine, yours = dict(ours[tag]), dict(theirs[tag])
      for step in sorted({*mine, *yours}):
        pair = mine.get(step), yours.get(step)
        # NaN equals NaN here.
        if repr(pair[0]) != repr(pair[1]):
          found[f"{folder}/{tag}"] = (step, *pair)
          break
  return found, count


def _is_time(tag: str) -> bool:
  """Whether a curve is about the machine rather than the run."""
  return "per_second" in tag or "steps_per" in tag or "seconds" in tag


def _checkpoints(directory: files.PathLike) -> dict[int, str]:
  """Returns the checkpoints of a run by step."""
  root = files.as_path(directory)
  found = {}
  for path in root.iterdir():
    match = re.fullmatch(r"ckpt-(\d+)\.index", path.name)
    if match:
      found[int(match[1])] = str(path).removesuffix(".index")
  return found


def compare_checkpoints(one: str, other: str) -> tuple[Part, ...]:
  """Compares two checkpoints, variable by variable."""
  import numpy as np

  from swe_tf.training import saved_weights

  readers = [checkpoint_files.reader(path) for path in (one, other)]
  ours, theirs = (
    {key for key in reader.get_variable_to_shape_map() if key.endswith(_SUFFIX)}
    for reader in readers
  )
  distances: dict[str, float] = {}
  for key in ours & theirs:
    mine, yours = (np.asarray(reader.get_tensor(key)) for reader in readers)
    is_alike = mine.shape == yours.shape and mine.dtype == yours.dtype
    if is_alike and mine.tobytes() == yours.tobytes():
      continue
    distances[key] = float("inf")
    if is_alike and mine.dtype.kind in "fiu":
      apart = np.abs(mine.astype(float) - yours.astype(float))
      distances[key] = float(np.max(apart))
  weights = saved_weights.weight_keys(one) | saved_weights.weight_keys(other)
  kinds = {key: _kind(key, weights) for key in ours | theirs}
  return tuple(_part(kind, kinds, ours, theirs, distances) for kind in KINDS)


def _kind(key: str, weights: Container[str]) -> str:
  if ".OPTIMIZER_SLOT" in key:
    return "slots"
  if key in weights:
    return "weights"
  # Keras's new optimizers keep their slots in a list.
  is_slot = re.fullmatch(
    r"optimizer/.*_variables/\d+", key.removesuffix(_SUFFIX)
  )
  return "slots" if is_slot else "rest"


def _part(
  kind: str,
  kinds: Mapping[str, str],
  ours: Set[str],
  theirs: Set[str],
  distances: Mapping[str, float],
) -> Part:
  def of_kind(keys: Iterable[str]) -> list[str]:
    return sorted(key for key in keys if kinds[key] == kind)

  differ = sorted(of_kind(distances), key=lambda key: -distances[key])
  return Part(
    kind=kind,
    count=len(of_kind(ours & theirs)),
    differ=tuple(key.removesuffix(_SUFFIX) for key in differ),
    largest=max((distances[key] for key in differ), default=0.0),
    only=tuple(key.removesuffix(_SUFFIX) for key in of_kind(ours ^ theirs)),
  )
