"""Lowers and compiles the steps of an experiment for a TPU, without a TPU.

One replica of many is traced by TPUStrategy (`one_replica`) and lowered to
XLA's HLO; the compiler of libtpu (`compiler`) runs in processes of its own.
"""

from collections.abc import Callable, Mapping, Sequence
import concurrent.futures
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import subprocess
import sys
from typing import Any

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2

from official.core import config_definitions as cfg
from official.modeling import performance
from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.configs import limits
from swe_tf.doctor.tpu import depths as depths_lib
from swe_tf.doctor.tpu import one_replica
from swe_tf.doctor.tpu import step_kinds
from swe_tf.doctor.tpu import topologies
from swe_tf.training import micro_batches

Say = Callable[[str], Any]
# The compiler's reports, by kind of step and depth.
Reports = dict[str, dict[int, dict[str, Any]]]


def require_compiler() -> str:
  """Returns the compiler's versions, or raises `UsageError` without one."""
  packages = ("jax", "libtpu")
  for package in packages:
    if importlib.util.find_spec(package) is None:
      raise errors.UsageError(
        f"{package} is not installed; it has the TPU compiler: in a clone, pip "
        "install -c constraints.txt '.[tpu-check]'."
      )
  return ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)


def check_batch(
  config: cfg.ExperimentConfig, topology: topologies.Topology
) -> None:
  """Raises unless the batches can be divided among the replicas of a slice."""
  limits.check_replicas(config, topology.replicas)
  micro_batches.check(config.task, topology.replicas)


def lower(kind: str, config: cfg.ExperimentConfig, num_replicas: int) -> bytes:
  """Lowers a step of one replica, which has its part of the batch.

  The serialized `HloModuleProto` has no names and source lines, so that equal
  programs are equal bytes.
  """
  performance.set_mixed_precision_policy(
    config.runtime.mixed_precision_dtype or "float32"
  )
  name = "validation_data" if kind == step_kinds.EVALUATION else "train_data"
  batch = getattr(config.task, name).global_batch_size // num_replicas
  strategy = one_replica.OneReplicaOfTPUStrategy(num_replicas)
  with strategy.scope():
    step = step_kinds.build_step(kind, config)
    inputs = step_kinds.make_inputs(config, batch, kind)

    @tf.function(jit_compile=True, autograph=False)
    def program(inputs):
      return strategy.run(step.run, args=(inputs,))

    lowered = program.experimental_get_compiler_ir(inputs)(
      stage="hlo_serialized", platform_name="CPU"
    )
  # Names and numbers depend on earlier traces in the same process.
  module = hlo_pb2.HloModuleProto.FromString(lowered)
  module.name = module.entry_computation_name = "step"
  module.id = 0
  for computation in module.computations:
    computation.name = f"computation.{computation.id}"
    if computation.id == module.entry_computation_id:
      computation.name = module.name
    for instruction in computation.instructions:
      instruction.ClearField("metadata")
  return module.SerializeToString(deterministic=True)


def compile_steps(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  depths: Mapping[str, Sequence[int]],
  directory: files.Path,
  jobs: int,
  say: Say,
  kinds: Sequence[str] = (),
) -> Reports:
  """Lowers and compiles kinds of steps at their depths, `jobs` at a time.

  Programs and reports are kept in `directory`; a program that already has a
  report is not compiled again.
  """
  kinds = kinds or list(depths)
  paths = {}
  for kind in kinds:
    for depth in depths[kind]:
      config_there = depths_lib.at_depth(config, depth)
      # The name of a phase may have a number of layers in it.
      there = step_kinds.kinds(config_there)[list(depths).index(kind)]
      module = lower(there.name, config_there, topology.replicas)
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
      kind: {
        depth: reports[paths[kind, depth]].result() for depth in depths[kind]
      }
      for kind in kinds
    }


def _compile(path: files.Path, topology: topologies.Topology, say: Say):
  """Runs the compiler in its own process, unless there is a report."""
  versions = require_compiler().replace(", ", "_").replace(" ", "-")
  slug = topology.name.replace(":", "-")
  report = path.with_suffix(f".{slug}.{versions}.json")
  if report.exists():
    return files.read_json(report)
  words = ["-m", "swe_tf.doctor.tpu.compiler"]
  options = [f"{k}={v}" for k, v in topology.generation.options.items()]
  with files.local_copy(path) as program:
    words += [program, topology.name, str(topology.replicas), *options]
    done = subprocess.run(
      [sys.executable, *words], capture_output=True, text=True, check=False
    )
  if done.returncode:
    lines = done.stderr.strip().splitlines() or ["killed"]
    raise errors.UsageError(f"the TPU compiler failed: {lines[-1]}")
  result = json.loads(done.stdout.splitlines()[-1])
  files.write_json(report, result)
  say(f"compiled {path.name} for {topology.name} in {result['seconds']:.0f} s")
  return result


def fewest_micro_batches(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  layers: int,
  compile_steps: Callable[..., Reports],
  say: Say,
) -> tuple[cfg.ExperimentConfig, Reports]:
  """Returns the config with the fewest micro-batches that fit, and reports.

  Fewer are faster, since the matrices are larger. Numbers are tried from 1 up.
  A number is rejected at the first step that does not fit; the stock step,
  which mostly needs the most memory, comes first. The step that needs the most
  is then compiled at the full depth: a line from fewer layers can be too low.
  """
  hbm = topology.generation.hbm
  sequences = config.task.train_data.global_batch_size // topology.replicas
  for count in range(1, sequences + 1):
    if sequences % count:
      continue
    cut = config.replace(task={"micro_batches": count})
    kinds = [kind.name for kind in step_kinds.kinds(cut)]
    reports: Reports = {}
    peaks: dict[str, float] = {}
    for kind in kinds:
      reports |= compile_steps(cut, kinds=[kind])
      peaks[kind] = _peak(reports[kind], layers)
      if peaks[kind] > hbm:
        break
    most = max(peaks, key=lambda kind: peaks[kind])
    if peaks[most] <= hbm and layers not in reports[most]:
      whole = dict.fromkeys(kinds, [layers])
      real = compile_steps(cut, kinds=[most], depths=whole)[most]
      equal = [kind for kind in kinds if reports[kind] == reports[most]]
      reports |= dict.fromkeys(equal, real)
      peaks[most] = _peak(real, layers)
    peak = peaks[most]
    needs = messages.size(peak) if math.isfinite(peak) else "more"
    verdict = f"the {most} step is too large" if peak > hbm else "fits"
    say(
      f"task.micro_batches={count} needs {needs} of {messages.size(hbm)}: "
      f"{verdict} ({', '.join(map(str, reports[most]))} layers compiled)"
    )
    if peak <= hbm:
      return cut, reports
  raise errors.Failed(
    f"not even one sequence at a time fits {topology.name}; use a TPU with "
    "more memory, shorter sequences or a smaller model"
  )


def _peak(reports: dict[int, dict[str, Any]], layers: int) -> float:
  """Returns the memory of a step at the full depth; infinity if too large."""
  if any("too_large" in each for each in reports.values()):
    return math.inf  # It could not be compiled.
  return depths_lib.extrapolate(reports, layers)["peak"].value
