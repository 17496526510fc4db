"""How the runs of a study follow each other, and what is left of them.

    DIR/study.json            what the study is made of
    DIR/results.json          all results, when the last run has ended
    DIR/NAME/overrides.yaml   the run's own configuration
    DIR/NAME/...              a Model Garden run: params.yaml, checkpoints, logs
    DIR/NAME/run.json         its axes, and how long it has taken so far
    DIR/NAME/result.json      its last metrics, when it has finished

A sweep may be stopped at any time, by any means, and called again: runs that
have a `result.json` are not repeated, those that were interrupted go on from
their checkpoints.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import time
from typing import Any

import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf.runs import scalars as curves
from swe_tf.study import plan
from swe_tf.study import progress as progress_lib
from swe_tf.study import run_process

_STUDY, _RUN, _RESULT = "study.json", "run.json", "result.json"
_RESULTS = "results.json"
_OVERRIDES = "overrides.yaml"
_POLL_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class PlannedRun:
  """A run with all that a sweep has to know about it.

  Attributes:
    run: The run of the study.
    config: Its whole configuration, as nested tables.
    steps: How many steps it has.
    tokens: How many tokens it reads.
    flops: The FLOPs of its matrix products.
  """

  run: plan.Run
  config: Mapping[str, Any]
  steps: int
  tokens: int
  flops: int

  @property
  def name(self) -> str:
    return self.run.name


class Sweep:
  """A study's runs and their directory."""

  def __init__(
    self,
    experiment: str,
    metrics: Sequence[str],
    runs: Sequence[PlannedRun],
    output_dir: files.PathLike,
  ):
    """Initializes the sweep; writes nothing.

    Args:
      experiment: The name of the base experiment.
      metrics: The validation scalars that a result holds.
      runs: The runs, in order.
      output_dir: The directory. It may hold runs of the same study.

    Raises:
      UsageError: If a run there has another configuration.
    """
    self.runs = runs
    self.output_dir = pathlib.Path(output_dir)
    self._experiment = experiment
    self._metrics = metrics
    for run in runs:
      path = self.directory(run) / _OVERRIDES
      if path.exists():
        earlier = yaml.safe_load(path.read_text(encoding="utf-8"))
        difference = _first_difference(earlier, run.config)
        if difference:
          raise errors.UsageError(
            f"{self.directory(run)}: the run here has {difference}; choose "
            "another --output_dir."
          )

  def directory(self, run: PlannedRun) -> pathlib.Path:
    return self.output_dir / run.name

  def result(self, run: PlannedRun) -> dict[str, Any] | None:
    """Returns the content of a run's `result.json`, None if it has none."""
    path = self.directory(run) / _RESULT
    return files.read_json(path) if path.exists() else None

  def step(self, run: PlannedRun) -> int:
    """Returns how far a run has come."""
    return run_process.last_step(self.directory(run))

  def write_study(self, unigram_entropy: float) -> None:
    """Leaves what the study is made of, for `swe report` and for people."""
    files.write_json(
      self.output_dir / _STUDY,
      {
        "experiment": self._experiment,
        "metrics": list(self._metrics),
        "unigram_entropy": unigram_entropy,
        "runs": {run.name: dict(run.run.point) for run in self.runs},
      },
    )

  def write_results(self) -> None:
    """Leaves the results of all finished runs in one file."""
    found = {run.name: self.result(run) for run in self.runs}
    files.write_json(
      self.output_dir / _RESULTS,
      [
        {"name": run.name, "axes": dict(run.run.point), **found[run.name]}
        for run in self.runs
        if found[run.name]
      ],
    )

  def execute(
    self, jobs: int, progress: progress_lib.SweepProgress
  ) -> dict[str, str]:
    """Does what is not done yet.

    Args:
      jobs: How many runs at a time. The cores are divided among them.
      progress: Is told of every one.

    Returns:
      The reasons of the runs that failed, by name.
    """
    failures = {}
    waiting = []
    for run in self.runs:
      result = self.result(run)
      if result is None:
        waiting.append(run)
      else:
        progress.skip(run, result)
    running: dict[int, tuple[PlannedRun, run_process.RunProcess]] = {}
    try:
      while waiting or running:
        for slot in range(jobs):
          if waiting and slot not in running:
            run = waiting.pop(0)
            running[slot] = run, self._start(run, _cores_of(slot, jobs))
            progress.start(run)
        time.sleep(_POLL_SECONDS)
        for slot, (run, process) in list(running.items()):
          progress.step(run, self.step(run))
          if process.poll() is None:
            continue
          del running[slot]
          failure = self._finish(run, process)
          if failure:
            failures[run.name] = failure
          progress.finish(run, self.result(run), failure)
    finally:
      for run, process in running.values():
        process.stop()
        self._add_time(run, process)
    return failures

  def _start(self, run: PlannedRun, cores) -> run_process.RunProcess:
    directory = self.directory(run)
    directory.mkdir(parents=True, exist_ok=True)
    config_file = directory / _OVERRIDES
    if not config_file.exists():
      with files.complete_or_absent(config_file) as scratch:
        pathlib.Path(scratch).write_text(
          yaml.safe_dump(run.config, sort_keys=False), encoding="utf-8"
        )
      files.write_json(
        directory / _RUN,
        {
          "name": run.name,
          "axes": dict(run.run.point),
          "seconds": 0.0,
          "cpu_seconds": 0.0,
        },
      )
    return run_process.RunProcess(
      directory, self._experiment, config_file, cores
    )

  def _add_time(self, run, process) -> dict[str, Any]:
    path = self.directory(run) / _RUN
    content = files.read_json(path)
    content["seconds"] += process.seconds
    content["cpu_seconds"] += process.cpu_seconds
    files.write_json(path, content)
    return content

  def _finish(self, run, process) -> str:
    """Writes the result of a run that has ended; returns why it failed."""
    spent = self._add_time(run, process)
    if process.poll():
      return (
        f"status {process.poll()}: "
        f"{run_process.last_words(self.directory(run))}"
      )
    scalars = curves.read_scalars(str(self.directory(run) / "validation"))
    absent = [name for name in self._metrics if name not in scalars]
    if absent:
      return (
        f"validation has no {absent[0]!r}, only "
        f"{', '.join(sorted(scalars)) or 'nothing'}"
      )
    files.write_json(
      self.directory(run) / _RESULT,
      {
        "status": "finished",
        "steps": scalars[self._metrics[0]][-1][0],
        "seconds": spent["seconds"],
        "cpu_seconds": spent["cpu_seconds"],
        "metrics": {name: scalars[name][-1][1] for name in self._metrics},
      },
    )
    return ""


def _cores_of(slot: int, jobs: int) -> list[int]:
  """Returns the cores of one of `jobs` equal parts; all if there is one."""
  if jobs == 1 or not hasattr(os, "sched_getaffinity"):
    return []
  cores = sorted(os.sched_getaffinity(0))
  each = max(1, len(cores) // jobs)
  first = slot * each % len(cores)
  return cores[first : first + each]


def _first_difference(earlier, now, path: str = "") -> str:
  """Says where two nested tables differ; '' if they do not."""
  if isinstance(earlier, dict) and isinstance(now, dict):
    for key in (*earlier, *(key for key in now if key not in earlier)):
      found = _first_difference(
        earlier.get(key), now.get(key), f"{path}.{key}".lstrip(".")
      )
      if found:
        return found
    return ""
  return "" if earlier == now else f"{path} {earlier!r}, but now it is {now!r}"
