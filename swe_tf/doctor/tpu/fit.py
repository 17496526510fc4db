"""The fewest micro-batches with which the steps of an experiment fit a TPU.

Fewer are faster, since the matrices are larger. Numbers are tried from 1 up,
and the first that fits is the answer. A number is rejected at the first step
that does not fit; the stock step, which needs the most memory, comes first.
"""

from collections.abc import Callable
import math

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import findings
from swe_tf.doctor.tpu import depths as depths_lib
from swe_tf.doctor.tpu import programs
from swe_tf.doctor.tpu import step_kinds
from swe_tf.doctor.tpu import topologies


def with_micro_batches(
  config: cfg.ExperimentConfig, count: int
) -> cfg.ExperimentConfig:
  """Returns an unlocked copy with another `task.micro_batches`."""
  return config.replace(task={"micro_batches": count})


def divisors(number: int) -> list[int]:
  """Returns the divisors, from 1 up."""
  return [n for n in range(1, number + 1) if number % n == 0]


def fewest(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  layers: int,
  compile_steps: Callable[..., programs.Reports],
  say: programs.Say,
) -> tuple[int, programs.Reports]:
  """Returns the fewest micro-batches that fit, and the reports of their steps.

  Args:
    config: The experiment; its `task.micro_batches` is ignored.
    topology: The TPU.
    layers: The full depth.
    compile_steps: Returns the reports of `kinds` of steps of an experiment.
    say: Progress callback.

  Raises:
    Failed: If no number fits, or the memory cannot be extrapolated.
  """
  hbm = topology.generation.hbm
  sequences = config.task.train_data.global_batch_size // topology.replicas
  for count in divisors(sequences):
    cut = with_micro_batches(config, count)
    reports: programs.Reports = {}
    peak = 0.0
    for kind in step_kinds.KINDS:
      reports |= compile_steps(cut, kinds=[kind])
      peak = max(peak, _peak(reports[kind], layers, count))
      if peak > hbm:
        break
    needs = findings.size(peak) if math.isfinite(peak) else "more"
    verdict = f"the {kind} step is too large" if peak > hbm else "fits"
    say(
      f"task.micro_batches={count} needs {needs} of {findings.size(hbm)}: "
      f"{verdict}"
    )
    if peak <= hbm:
      return count, reports
  raise errors.Failed(
    f"not even one sequence at a time fits {topology.name}; use a TPU with "
    "more memory, shorter sequences or a smaller model"
  )


def _peak(by_depth, layers: int, count: int) -> float:
  """Returns a step's memory; infinity if it was too large to be compiled."""
  if any("too_large" in report for report in by_depth.values()):
    return math.inf
  peak = depths_lib.extrapolate(by_depth, layers)["peak"]
  if not peak.holds:
    raise errors.Failed(
      f"the memory of {layers} layers with task.micro_batches={count} is not "
      f"linear in the depths {', '.join(map(str, by_depth))}; choose larger "
      "depths"
    )
  return peak.value


def advise_slices(
  config: cfg.ExperimentConfig, topology: topologies.Topology
) -> list[str]:
  """Returns a line for each number of slices that saves micro-batches.

  With twice as many slices a replica has half the sequences, so half as many
  micro-batches have the size that fits.

  Args:
    config: The experiment, with the micro-batches that fit one slice.
    topology: The slice.
  """
  count = config.task.micro_batches
  if count == 1:
    return []
  payloads = ", ".join(
    f"{findings.size(phase.all_reduce_bytes)} {name}"
    for name, phase in cost_lib.estimate(config).phases.items()
  )
  return [
    "several slices, by the cost model only (nothing was compiled for them); "
    f"each step all-reduces between slices: {payloads}",
    *(
      f"  {n} slices of {topology.name}: task.micro_batches={count // n}"
      for n in divisors(count)[1:]
    ),
  ]
