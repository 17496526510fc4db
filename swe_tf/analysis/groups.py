"""Runs that may be averaged: they differ only in their seeds.

Differences from the baseline are taken seed by seed. Imports no TensorFlow.
"""

import collections
from collections.abc import Iterable, Sequence
import dataclasses
import statistics
from typing import Optional

from swe_tf.analysis import found_runs
from swe_tf.analysis import run_config


@dataclasses.dataclass(frozen=True)
class Statistic:
  """A mean over seeds.

  Attributes:
    mean: The mean.
    std: The sample standard deviation; None for a single value.
    n: The number of values.
  """

  mean: float
  std: float | None
  n: int


def summarize(values: Iterable[float | None]) -> Statistic | None:
  """Returns the mean and deviation of the numbers; None if all are None.

  >>> summarize([1.0, 3.0, None])
  Statistic(mean=2.0, std=1.4142135623730951, n=2)
  """
  found = [value for value in values if value is not None]
  if not found:
    return None
  return Statistic(
    statistics.fmean(found),
    statistics.stdev(found) if len(found) > 1 else None,
    len(found),
  )


@dataclasses.dataclass(frozen=True)
class Group:
  """Runs that differ only in their seeds.

  Attributes:
    config: The config of the first run.
    runs: The runs that finished.
    left_out: The runs that do not count; see `Run.status`.
  """

  config: run_config.RunConfig
  runs: Sequence[found_runs.Run]
  left_out: Sequence[found_runs.Run]

  def values(self, name: str) -> dict[tuple[int | None, ...], float]:
    """Returns the named score of the runs that have it, by seed."""
    return {
      run.config.seed: run.scores[name]
      for run in self.runs
      if name in run.scores
    }

  def statistic(self, name: str) -> Statistic | None:
    return summarize(self.values(name).values())

  def differences(self, baseline: Optional["Group"], name: str) -> list[float]:
    """Returns the differences from the baseline, one per common seed."""
    if baseline is None or baseline is self:
      return []
    theirs = baseline.values(name)
    return [
      value - theirs[seed]
      for seed, value in self.values(name).items()
      if seed in theirs
    ]

  def difference(
    self, baseline: Optional["Group"], name: str
  ) -> Statistic | None:
    """Returns the mean difference from the baseline, over common seeds."""
    return summarize(self.differences(baseline, name))

  @property
  def untie_step(self) -> float | None:
    """Tau; the mean measured one if the config does not fix it."""
    if self.config.untie_step is not None:
      return self.config.untie_step
    measured = summarize(run.untie_step for run in self.runs)
    return measured.mean if measured else None

  @property
  def reasons(self) -> str | None:
    """How many runs do not count, and why."""
    counts = collections.Counter(run.status for run in self.left_out)
    return ", ".join(f"{n} {status}" for status, n in counts.items()) or None
