"""Compiles the steps of an experiment for a TPU, without a TPU.

Compiling all layers takes long, and all layers are alike, so the steps are
compiled at three small depths. The first and the last give a line, which is
extrapolated to the full depth; the one between shows how straight the line is.
Two depths are a third cheaper but leave the line unchecked.
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
from swe_tf.doctor.tpu import lowering
from swe_tf.doctor.tpu import steps
from swe_tf.doctor.tpu import topologies
from swe_tf.modeling import registry
from swe_tf.training import micro_batches

_EXTRA = "pip install 'swe-tf[tpu-check]'"
_MEMORY = ("arguments", "outputs", "temporaries", "code")
# "peak" is the total memory.
QUANTITIES = (*_MEMORY, "peak", "flops", "bytes", "all_reduce")
_TOLERANCE = 0.05
Say = Callable[[str], Any]
# See `lowering.lower_step`.
Lower = Callable[[str, cfg.ExperimentConfig, int], bytes]


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A quantity at the full depth.

  Attributes:
    value: What the compiler reports, or what the line through two depths gives.
    deviation: How far the depth between them is off the line, relatively; None
      if the value was compiled, or there are only two depths.
  """

  value: float
  deviation: float | None = None

  @property
  def holds(self) -> bool:
    """Whether the depth between, if there is one, lies on the line."""
    return self.deviation is None or abs(self.deviation) <= _TOLERANCE


def require_compiler() -> str:
  """Returns the compiler's versions, or raises `UsageError` without one."""
  for package in ("jax", "libtpu"):
    if importlib.util.find_spec(package) is None:
      raise errors.UsageError(
        f"{package} is not installed; it has the TPU compiler: {_EXTRA}."
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

  With 2 units the compiler finds shortcuts that it does not find with more.
  """
  unit, layers = config.task.sharing.unit_size, num_layers(config)
  return [3 * unit, 4 * unit, 5 * unit] if layers > 5 * unit else [layers]


def check(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  depths: Sequence[int],
) -> None:
  """Raises `UsageError` unless topology and depths suit the experiment."""
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
    directory: Where programs and reports are kept. A program that already has a
      report is not compiled again.
    jobs: How many compilers run at a time.
    say: Progress callback.
    lower: Lowers one step, or a loop.
    kinds: Which kinds of step.

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
  """Runs the compiler in its own process, unless there is a report."""
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
          "swe_tf.doctor.tpu.compiler",
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
