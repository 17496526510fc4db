"""The fewest micro-batches with which the steps of an experiment fit a TPU.

Fewer are faster, since the matrices are larger. Numbers are tried from 1 up,
and the first that fits is the answer. A number is rejected at the first step
that does not fit; the stock step, which needs the most memory, comes first.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.doctor import units_of_measure as show
from swe_tf.doctor.tpu import programs as tpu
from swe_tf.doctor.tpu import steps
from swe_tf.doctor.tpu import topologies

# The compiler's reports, by kind of step and depth.
Reports = Mapping[str, Mapping[int, Mapping[str, Any]]]


class CompileSteps(Protocol):
  """Compiles steps of an experiment; see `tpu.compile_steps`."""

  def __call__(
    self, config: cfg.ExperimentConfig, *, kinds: list[str]
  ) -> Reports: ...


def with_micro_batches(
  config: cfg.ExperimentConfig, count: int
) -> cfg.ExperimentConfig:
  """Returns an unlocked copy with another `task.micro_batches`."""
  return config.replace(task={"micro_batches": count})


def numbers(config: cfg.ExperimentConfig, replicas: int) -> list[int]:
  """Returns every possible number of micro-batches on a replica."""
  sequences = config.task.train_data.global_batch_size // replicas
  return [n for n in range(1, sequences + 1) if sequences % n == 0]


def peak(reports: Reports, layers: int) -> float | None:
  """Returns the memory of the largest step at the full depth.

  Args:
    reports: See `tpu.compile_steps`.
    layers: The full depth.

  Returns:
    The memory in bytes, infinite if a step was too large for the compiler; None
    if the memory is not linear in the depth.
  """
  if any(
    "too_large" in each for by in reports.values() for each in by.values()
  ):
    return float("inf")
  peaks = [tpu.extrapolate(by, layers)["peak"] for by in reports.values()]
  if not all(each.holds for each in peaks):
    return None
  return max(each.value for each in peaks)


def fewest(
  config: cfg.ExperimentConfig,
  topology: topologies.Topology,
  layers: int,
  compile_steps: CompileSteps,
  say: tpu.Say,
) -> tuple[int, Reports]:
  """Returns the fewest micro-batches that fit, and the reports of their steps.

  Args:
    config: The experiment; its `task.micro_batches` is ignored.
    topology: The TPU.
    layers: The full depth.
    compile_steps: Compiles steps of an experiment.
    say: Progress callback.

  Raises:
    Failed: If no number fits, or the memory cannot be extrapolated.
  """
  hbm = topology.generation.hbm
  for count in numbers(config, topology.replicas):
    cut = with_micro_batches(config, count)
    reports: dict[str, Any] = {}
    needs = 0.0
    for kind in steps.KINDS:
      reports |= compile_steps(cut, kinds=[kind])
      needs = _require_peak(reports, layers, count)
      if needs > hbm:
        break
    size = "more" if needs == float("inf") else show.size(needs)
    say(
      f"task.micro_batches={count} needs {size} of {show.size(hbm)}: "
      + (f"the {kind} step is too large" if needs > hbm else "fits")
    )
    if needs <= hbm:
      return count, reports
  raise errors.Failed(
    f"not even one sequence at a time fits {topology.name}; use a TPU with "
    "more memory, shorter sequences or a smaller model"
  )


def _require_peak(reports: Reports, layers: int, count: int) -> float:
  """Returns the memory of the largest step, or raises `Failed`."""
  needs = peak(reports, layers)
  if needs is None:
    raise errors.Failed(
      f"the memory of {layers} layers with task.micro_batches={count} is not "
      "linear in these depths; compile deeper models with --depths"
    )
  return needs
