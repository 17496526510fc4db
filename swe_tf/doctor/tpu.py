"""The steps of an experiment, compiled for a TPU that need not be there.

Compiling all layers takes long, and all layers are alike: the steps are
compiled at three small depths. The first and the last give the line on which
the full depth lies; the one between tells how far it is from being a line. Two
depths are a third cheaper, and nothing tells.
"""

from collections.abc import Callable, Mapping, Sequence
import concurrent.futures
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from typing import Any

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import files
from swe_tf.doctor import lowering
from swe_tf.doctor import steps
from swe_tf.doctor import topologies
from swe_tf.modeling import registry
from swe_tf.training import micro_batches

_EXTRA = "pip install 'swe-tf[tpu-check]'"
_MEMORY = ("arguments", "outputs", "temporaries", "code")
# "peak" is the memory in all.
QUANTITIES = (*_MEMORY, "peak", "flops", "bytes", "all_reduce")
_TOLERANCE = 0.05
Say = Callable[[str], Any]
# See `lowering.lower_step`.
Lower = Callable[[str, cfg.ExperimentConfig, int], bytes]


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A quantity at the full depth.

  Attributes:
    value: What the compiler reports, or the line through two depths.
    deviation: How far the depth between them is off the line, relative; None
      if there is none: the value was compiled, or there are two depths only.
  """

  value: float
  deviation: float | None = None

  @property
  def holds(self) -> bool:
    """Whether no depth between denies that the quantity grows on a line."""
    return self.deviation is None or abs(self.deviation) <= _TOLERANCE


def require_compiler() -> str:
  """Returns the versions in use, or raises `UsageError` if there is none."""
  for package in ("jax", "libtpu"):
    if importlib.util.find_spec(package) is None:
      raise errors.UsageError(
        f"{package} is not installed, and the TPU compiler is in it: {_EXTRA}."
      )
  return ", ".join(
    f"{package} {importlib.metadata.version(package)}"
    for package in ("jax", "libtpu")
  )


def num_layers(config: cfg.ExperimentConfig) -> int:
  """Returns the full depth."""
  encoder = registry.require_encoder(config.task.as_dict())
  return encoder.size.num_layers


def depths_of(config: cfg.ExperimentConfig) -> list[int]:
  """Returns the depths to compile: 3, 4 and 5 units, or all layers if fewer.

  With 2 units the compiler finds short cuts that it does not find with more.
  """
  unit, layers = config.task.sharing.unit_size, num_layers(config)
  return [3 * unit, 4 * unit, 5 * unit] if layers > 5 * unit else [layers]


def check(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  depths: Sequence[int],
) -> None:
  """Raises `UsageError` unless the experiment can be compiled so."""
  batch = config.task.train_data.global_batch_size
  if batch % topology.replicas:
    raise errors.UsageError(
      f"task.train_data.global_batch_size ({batch}) cannot be divided among "
      f"the {topology.replicas} replicas of {topology.name}."
    )
  micro_batches.check(config.task, topology.replicas)
  unit = config.task.sharing.unit_size
  if (
    len(depths) not in (1, 2, 3)
    or any(depth < 1 or depth % unit for depth in depths)
    or list(depths) != sorted(set(depths))
  ):
    raise errors.UsageError(
      f"--depths={','.join(map(str, depths))} must be one, two or three "
      f"numbers of layers, in order, multiples of unit_size ({unit})."
    )


def compile_steps(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  depths: Sequence[int],
  directory: files.Path,
  jobs: int,
  say: Say,
  lower: Lower = lowering.lower_step,
  kinds: Sequence[str] = steps.KINDS,
) -> dict[str, dict[int, dict[str, Any]]]:
  """Lowers and compiles the kinds of steps at every depth.

  Args:
    config: The experiment.
    topology: The TPU.
    depths: Numbers of layers.
    directory: Where programs and reports are kept. What is there already is
      not compiled again.
    jobs: How many compilers run at a time.
    say: Progress callback.
    lower: Makes the program: of one step, or of a loop.
    kinds: Which steps.

  Returns:
    The compiler's reports, by kind and depth.
  """
  programs = {}
  for depth in depths:
    for kind in kinds:
      module = lower(kind, lowering.at_depth(config, depth), topology.replicas)
      programs[kind, depth] = _keep(module, directory)
      say(
        f"lowered the {kind} step with {depth} layers: "
        f"{programs[kind, depth].name}"
      )
  with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    # Equal programs have equal names, and are compiled once.
    reports = {
      path: pool.submit(_compile, path, topology, say)
      for path in dict.fromkeys(programs.values())
    }
    return {
      kind: {depth: reports[programs[kind, depth]].result() for depth in depths}
      for kind in kinds
    }


def _keep(module: bytes, directory: files.Path) -> files.Path:
  name = hashlib.sha256(module).hexdigest()[:16]
  path = directory / f"{name}.hlo_pb"
  files.write_bytes(path, module)
  return path


def _compile(path: files.Path, topology: topologies.Topology, say: Say):
  """Runs the compiler in a process of its own, unless it has run before."""
  versions = require_compiler().replace(", ", "_").replace(" ", "-")
  slug = topology.name.replace(":", "-")
  report = path.with_suffix(f".{slug}.{versions}.json")
  if not report.exists():
    options = [f"{k}={v}" for k, v in topology.generation.options.items()]
    with files.local_copy(path) as program:
      done = subprocess.run(
        [
          sys.executable,
          "-m",
          "swe_tf.doctor.tpu_compiler",
          program,
          topology.name,
          str(topology.replicas),
          *options,
        ],
        capture_output=True,
        text=True,
        check=False,
      )
    if done.returncode:
      lines = done.stderr.strip().splitlines() or ["killed"]
      raise errors.UsageError(f"the TPU compiler failed: {lines[-1]}")
    result = json.loads(done.stdout.splitlines()[-1])
    result["all_reduce"] = (
      result.get("collectives", {}).get("all-reduce", {}).get("bytes", 0)
    )
    files.write_json(report, result)
    say(
      f"compiled {path.name} for {topology.name} in {result['seconds']:.0f} s"
    )
  return files.read_json(report)


def extrapolate(
  reports: Mapping[int, Mapping[str, float]], layers: int
) -> dict[str, Estimate]:
  """Returns the quantities at a depth, from reports at up to three others.

  >>> line = {depth: {name: 10 + 5 * depth for name in QUANTITIES}
  ...         for depth in (2, 3, 4)}
  >>> extrapolate(line, 24)["flops"]
  Estimate(value=130.0, deviation=0.0)
  """
  depths = sorted(reports)
  if layers in reports:
    return {
      name: Estimate(_quantity(reports[layers], name)) for name in QUANTITIES
    }
  low, *between, high = depths
  found = {}
  for name in QUANTITIES:
    at = {depth: _quantity(reports[depth], name) for depth in depths}
    slope = (at[high] - at[low]) / (high - low)
    deviation = None
    for middle in between:
      on_line = at[low] + slope * (middle - low)
      deviation = (at[middle] - on_line) / on_line if on_line else 0.0
    found[name] = Estimate(at[low] + slope * (layers - low), deviation)
  return found


def _quantity(report: Mapping[str, float], name: str) -> float:
  if name == "peak":
    return sum(report[part] for part in _MEMORY)
  return report[name]
