"""Runs in their directories, executed and shown. Imports no TensorFlow."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
from typing import Any

from rich import console as rich_console

from swe_tf.studies import directory as directory_lib
from swe_tf.studies import executors
from swe_tf.studies import progress as progress_lib
from swe_tf.studies import status as status_lib
from swe_tf.studies import worker


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """A run of a study, in its directory.

  Attributes:
    name: The name of its directory.
    directory: The directory.
    config: Its experiment, a Model Garden config.
    about: The content of `run.json`.
    call: What trains it.
    cost: Its cost in any unit, to estimate the time left.
  """

  name: str
  directory: directory_lib.RunDirectory
  config: Any
  about: Mapping[str, Any]
  call: worker.Call
  cost: float = 1.0

  def begin(self) -> None:
    """Writes `params.yaml` and `run.json`."""
    self.directory.begin(self.about, self.config.as_dict())


def results_of(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
  """Returns the results of the finished runs by name."""
  found = ((run.name, run.directory.read_result()) for run in runs)
  return {name: result for name, result in found if result is not None}


def execute(
  runs: Sequence[Run],
  executor: executors.Executor,
  console: rich_console.Console,
  summarize: Callable[[Mapping[str, Any]], str],
) -> dict[str, str]:
  """Executes the runs that are not finished, and shows their progress.

  Args:
    runs: The runs.
    executor: Where they are executed.
    console: Where progress is shown.
    summarize: Summarizes a `result.json` in a few words.

  Returns:
    Why runs failed, by name.
  """
  finished, failures = results_of(runs), {}
  waiting = {run.name: run for run in runs if run.name not in finished}
  for run in waiting.values():
    run.begin()
  costs = {run.name: run.cost for run in runs}
  with progress_lib.Progress(console, costs, summarize) as shown:
    for name, result in finished.items():
      shown.skip(name, result)
    seen = {n: run.directory.read_progress() for n, run in waiting.items()}

    def tick() -> None:
      for name in waiting:
        now = waiting[name].directory.read_progress()
        if now != seen[name]:
          seen[name] = now
          shown.step(name, status_lib.from_table(now))

    calls = {name: run.call for name, run in waiting.items()}
    try:
      # Closed at once if it is interrupted: that ends the processes.
      with contextlib.closing(executor.run(calls, tick)) as ended:
        for name, error in ended:
          run = waiting.pop(name)
          if error:
            failures[name] = error
            shown.fail(name, f"{error}; see {run.directory.log_file}")
          else:
            shown.finish(name, run.directory.read_result() or {})
    except KeyboardInterrupt:
      shown.say("interrupted; run the same command again to resume")
      raise
  return failures
