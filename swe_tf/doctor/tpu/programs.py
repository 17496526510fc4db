"""Compiles the steps of an experiment for a TPU, without a TPU."""

from collections.abc import Callable, Sequence
import concurrent.futures
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
from swe_tf.doctor.tpu import depths as depths_lib
from swe_tf.doctor.tpu import lowering
from swe_tf.doctor.tpu import step_kinds
from swe_tf.doctor.tpu import topologies
from swe_tf.training import micro_batches

_EXTRA = "pip install 'swe-tf[tpu-check]'"
Say = Callable[[str], Any]
# The compiler's reports, by kind of step and depth.
Reports = dict[str, dict[int, dict[str, Any]]]


def require_compiler() -> str:
  """Returns the compiler's versions, or raises `UsageError` without one."""
  packages = ("jax", "libtpu")
  for package in packages:
    if importlib.util.find_spec(package) is None:
      raise errors.UsageError(
        f"{package} is not installed; it has the TPU compiler: {_EXTRA}."
      )
  return ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)


def check_batch(
  config: cfg.ExperimentConfig, topology: topologies.Topology
) -> None:
  """Raises `UsageError` unless the batch can be divided among the replicas."""
  batch = config.task.train_data.global_batch_size
  if batch % topology.replicas:
    raise errors.UsageError(
      f"task.train_data.global_batch_size ({batch}) cannot be divided among "
      f"the {topology.replicas} replicas of {topology.name}."
    )
  micro_batches.check(config.task, topology.replicas)


def compile_steps(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  depths: Sequence[int],
  directory: files.Path,
  jobs: int,
  say: Say,
  loop_steps: int | None = None,
  kinds: Sequence[str] = step_kinds.KINDS,
) -> Reports:
  """Lowers and compiles the kinds of steps at every depth.

  Args:
    config: The experiment.
    topology: The TPU.
    depths: Numbers of layers.
    directory: Where programs and reports are kept. A program that already has a
      report is not compiled again.
    jobs: How many compilers run at a time.
    say: Progress callback.
    loop_steps: See `lowering.lower`.
    kinds: Which kinds of step.

  Returns:
    The compiler's reports, by kind and depth.
  """
  paths = {}
  for depth in depths:
    for kind in kinds:
      module = lowering.lower(
        kind,
        depths_lib.at_depth(config, depth),
        topology.replicas,
        loop_steps,
      )
      # Equal programs have equal names, and are compiled once.
      name = hashlib.sha256(module).hexdigest()[:16]
      paths[kind, depth] = directory / f"{name}.hlo_pb"
      files.write_bytes(paths[kind, depth], module)
      say(f"lowered the {kind} step with {depth} layers: {name}.hlo_pb")
  with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    reports = {
      path: pool.submit(_compile, path, topology, say)
      for path in dict.fromkeys(paths.values())
    }
    return {
      kind: {depth: reports[paths[kind, depth]].result() for depth in depths}
      for kind in kinds
    }


def _compile(path: files.Path, topology: topologies.Topology, say: Say):
  """Runs the compiler in its own process, unless there is a report."""
  versions = require_compiler().replace(", ", "_").replace(" ", "-")
  slug = topology.name.replace(":", "-")
  report = path.with_suffix(f".{slug}.{versions}.json")
  if report.exists():
    return files.read_json(report)
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
  reduced = result.get("collectives", {}).get("all-reduce", {})
  result["all_reduce"] = reduced.get("bytes", 0)
  files.write_json(report, result)
  say(f"compiled {path.name} for {topology.name} in {result['seconds']:.0f} s")
  return result
