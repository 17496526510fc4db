"""What differs between two runs, and since when: config, curves, checkpoints.

Values are compared bit for bit. A checkpoint has weights, optimizer slots, and
the rest: steps, the state of dropout and of the data.
"""

from collections.abc import Sequence
import dataclasses
import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import sameness
from swe_tf import yaml_files
from swe_tf.analysis import scalars
from swe_tf.modeling import checkpoint_files

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
KINDS = ("weights", "slots", "rest")


@dataclasses.dataclass(frozen=True)
class Part:
  """The variables of one of `KINDS` in two checkpoints.

  How many both have, which differ, the most different first, the largest
  absolute difference, and which only one has.
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
    config: The fields that differ, with both values.
    curves: By name, the first step at which a curve differs, with both values.
    compared_curves: How many curves both have.
    steps: The steps at which both have a checkpoint.
    checkpoint: The parts of the last common checkpoint; empty without one.
    first_checkpoint: The first of these steps at which weights or slots differ.
  """

  config: Sequence[tuple[str, Any, Any]]
  curves: dict[str, tuple[int, float | None, float | None]]
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
  def has_results(self) -> bool:
    """Whether there is anything but configs to compare."""
    return bool(self.compared_curves or self.steps)

  @property
  def is_equal(self) -> bool:
    """Whether there are results, and nothing differs."""
    parts = all(part.is_equal for part in self.checkpoint)
    return self.has_results and not self.config and not self.curves and parts


def compare(one: files.PathLike, other: files.PathLike) -> Difference:
  configs, curves, checkpoints = [], [], []
  for directory in map(files.as_path, (one, other)):
    if not (directory / "params.yaml").exists():
      raise errors.UsageError(
        f"{directory} is not a run: it has no params.yaml. Name the model_dir "
        "of a run."
      )
    config = yaml_files.read(directory / "params.yaml") or {}
    trainer = config.get("trainer") if isinstance(config, dict) else None
    configs.append(config)
    curves.append(scalars.read_run(directory, trainer))
    checkpoints.append(
      {
        int(match[1]): str(path).removesuffix(".index")
        for path in directory.iterdir()
        if (match := re.fullmatch(r"ckpt-(\d+)\.index", path.name))
      }
    )
  both = [
    name
    for name in sorted(curves[0].keys() & curves[1].keys())
    # How fast a run is depends on the machine.
    if not re.search("per_second|steps_per|seconds", name)
  ]
  parted = {}
  for name in both:
    mine, yours = (dict(each[name]) for each in curves)
    for step in sorted({*mine, *yours}):
      # As text, NaN equals NaN.
      if repr(mine.get(step)) != repr(yours.get(step)):
        parted[name] = step, mine.get(step), yours.get(step)
        break
  steps = tuple(sorted(checkpoints[0].keys() & checkpoints[1].keys()))
  parts: tuple[Part, ...] = ()
  first = None
  for step in steps:
    parts = compare_checkpoints(*(found[step] for found in checkpoints))
    if first is None and not all(p.is_equal for p in parts if p.kind != "rest"):
      first = step
  config = sameness.difference(configs[0], configs[1])
  return Difference(config, parted, len(both), steps, parts, first)


def _name(key: str) -> str:
  """Returns a variable's name in a checkpoint, without our optimizer's."""
  return key.removesuffix(_SUFFIX).replace("/_inner_optimizer/", "/")


def compare_checkpoints(one: str, other: str) -> tuple[Part, ...]:
  import numpy as np

  from swe_tf.training import checkpoint

  readers = [checkpoint_files.reader(path) for path in (one, other)]
  # The keys by name: a slot has the same one whether or not the run shares.
  ours, theirs = (
    {_name(k): k for k in reader.get_variable_to_shape_map() if _SUFFIX in k}
    for reader in readers
  )
  distances: dict[str, float] = {}
  for name in ours.keys() & theirs.keys():
    mine, yours = (
      np.asarray(reader.get_tensor(keys[name]))
      for reader, keys in zip(readers, (ours, theirs))
    )
    is_alike = mine.shape == yours.shape and mine.dtype == yours.dtype
    if is_alike and mine.tobytes() == yours.tobytes():
      continue
    distances[name] = float("inf")
    if is_alike and mine.dtype.kind in "fiu":
      apart = np.abs(mine.astype(float) - yours.astype(float))
      distances[name] = float(np.max(apart))
  weights = {
    _name(key) for path in (one, other) for key in checkpoint.weight_keys(path)
  }

  def kind_of(name: str) -> str:
    if name in weights:
      return "weights"
    # Keras's new optimizers keep their slots in a list.
    slot = r".*\.OPTIMIZER_SLOT.*|optimizer/.*_variables/\d+"
    return "slots" if re.fullmatch(slot, name) else "rest"

  most = sorted(distances, key=lambda name: (-distances[name], name))
  parts = []
  for kind in KINDS:
    names = {name for name in ours | theirs if kind_of(name) == kind}
    differ = tuple(name for name in most if name in names)
    parts.append(
      Part(
        kind=kind,
        count=len(names & ours.keys() & theirs.keys()),
        differ=differ,
        largest=max((distances[name] for name in differ), default=0.0),
        only=tuple(sorted(names & (ours.keys() ^ theirs.keys()))),
      )
    )
  return tuple(parts)
