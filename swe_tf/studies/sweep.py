"""Executes the runs of a sweep, and collects their results.

    DIR/results.json   all results, when the last run has ended
    DIR/NAME/...       a run; see `directory`

A sweep may be stopped at any time, by any means, and called again: runs that
have a `result.json` are not repeated, and interrupted ones resume from their
checkpoints. Several machines that see one directory can divide a sweep into
shards.
"""

from collections.abc import Callable, Container, Mapping, Sequence
import dataclasses
import os
import re
import select
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import launcher
from swe_tf.studies import progress as progress_lib
from swe_tf.studies import status as status_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """A run of a sweep.

  Attributes:
    name: The name of its directory.
    function: What trains it, `module:function`; see `worker`.
    arguments: The function's arguments.
    config: What must not change when it is resumed; kept in its directory.
    about: What else is known about it, for its `run.json`.
    cost: Its cost in any unit, to estimate the time left.
  """

  name: str
  function: str
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  config: Mapping[str, Any] | None = None
  about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  cost: float = 1.0


def parse_shard(text: str) -> tuple[int, int]:
  """Returns i and n of `i/n`; '' is a single shard with all runs."""
  match = re.fullmatch(r"(\d+)/(\d+)", text or "0/1")
  if not match or int(match[1]) >= int(match[2]):
    raise errors.UsageError(
      f"--shard={text}: it must be i/n with 0 <= i < n, such as 0/4."
    )
  return int(match[1]), int(match[2])


class Sweep:
  """Runs and their directory."""

  def __init__(
    self,
    runs: Sequence[Run],
    output_dir: files.PathLike,
    shard: tuple[int, int] = (0, 1),
    read_config: Callable[[files.PathLike], Any] = yaml_files.read,
  ):
    """Initializes the sweep; writes nothing.

    Args:
      runs: The runs, in order.
      output_dir: The directory. It may hold runs with the same configs.
      shard: Execute run k only if k % n = i, for (i, n).
      read_config: Reads the config that a run in the directory was made from.

    Raises:
      UsageError: If a run in the directory has another config.
    """
    self.runs = runs
    self._directories = {
      run.name: directory_lib.RunDirectory(os.path.join(output_dir, run.name))
      for run in runs
    }
    self._results_file = os.path.join(output_dir, "results.json")
    index, count = shard
    self._mine = runs[index::count]
    for run in runs:
      path = self.directory(run.name).config_file
      if run.config is not None and path.exists():
        directory_lib.refuse_other(path.parent, read_config(path), run.config)

  def directory(self, name: str) -> directory_lib.RunDirectory:
    """Returns the directory of a run."""
    return self._directories[name]

  def results(self) -> dict[str, dict[str, Any]]:
    """Returns the results of the finished runs of all shards, by name."""
    found = ((name, d.read_result()) for name, d in self._directories.items())
    return {name: result for name, result in found if result}

  def write_results(self, failures: Container[str] = ()) -> None:
    """Writes `results.json`, unless runs of other shards are missing.

    Args:
      failures: The names of runs that will not have a result.
    """
    results = self.results()
    if all(r.name in results or r.name in failures for r in self.runs):
      content = [
        {"name": run.name, **run.about, **results[run.name]}
        for run in self.runs
        if run.name in results
      ]
      files.write_json(self._results_file, content)

  def progress(
    self, console, summarize: Callable[[progress_lib.Result], str]
  ) -> progress_lib.Progress:
    """Returns a display for `execute`; see `Progress`."""
    costs = {run.name: run.cost for run in self._mine}
    return progress_lib.Progress(console, costs, summarize)

  def execute(
    self, workers: Sequence[launcher.Worker], progress: progress_lib.Progress
  ) -> dict[str, Exception]:
    """Executes the runs that are not finished.

    Args:
      workers: They execute the runs, each one at a time.
      progress: Shows the progress of the runs.

    Returns:
      The errors of the runs that failed, by name.
    """
    results = self.results()
    for run in self._mine:
      if run.name in results:
        progress.skip(run.name, results[run.name])
    waiting = [run for run in self._mine if run.name not in results]
    running: dict[launcher.Worker, Run] = {}
    failures: dict[str, Exception] = {}
    try:
      while waiting or running:
        for worker in workers:
          if waiting and worker not in running:
            running[worker] = waiting.pop(0)
            self._start(running[worker], worker, progress)
        for worker in select.select(list(running), [], [])[0]:
          run = running[worker]
          for message in worker.receive():
            if message["event"] == "progress":
              del message["event"]
              progress.step(run.name, status_lib.Status(**message))
              continue
            del running[worker]
            try:
              progress.finish(run.name, launcher.value_of(message))
            except (errors.UsageError, launcher.JobFailed) as error:
              failures[run.name] = error
              log = self.directory(run.name).log_file
              progress.fail(run.name, f"{error}; see {log}")
    except KeyboardInterrupt:
      progress.say("interrupted; run the same command again to resume")
      raise
    return failures

  def _start(self, run: Run, worker: launcher.Worker, progress) -> None:
    directory = self.directory(run.name)
    directory.begin({"name": run.name, **run.about}, run.config)
    earlier = directory.read_progress()
    progress.start(run.name, earlier["step"], earlier["steps"])
    worker.start(run.function, run.arguments, directory.path)
