"""How the runs of a sweep follow each other, and what is left of them.

A sweep may be stopped at any time, by any means, and called again: runs that
have a `result.json` are not repeated, the one that was interrupted goes on
from its checkpoint. Imports no TensorFlow: the worker does.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.finetune import plan
from swe_tf.finetune import progress as progress_lib
from swe_tf.finetune import worker_process

_RESULT = "result.json"
_TEST_RESULT = "test_result.json"
_SETTINGS = "sweep.json"


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What became of the runs.

  Attributes:
    results: The content of `result.json`, of finished and of diverged runs.
    failures: The reasons of runs that did not come to an end.
  """

  results: Mapping[plan.Run, Mapping[str, Any]]
  failures: Mapping[plan.Run, str]


class Sweep:
  """A sweep and its directory."""

  def __init__(
    self,
    settings: plan.Settings,
    runs: Sequence[plan.Run],
    output_dir: files.PathLike,
  ):
    """Initializes the sweep; writes nothing.

    Args:
      settings: What the runs have in common.
      runs: The runs, in order.
      output_dir: The directory. It may hold runs of the same settings.

    Raises:
      UsageError: If it holds runs of other settings.
    """
    self.runs = runs
    self.output_dir = pathlib.Path(output_dir)
    self._settings = settings
    path = self.output_dir / _SETTINGS
    if path.exists():
      earlier = files.read_json(path)
      for name, value in dataclasses.asdict(settings).items():
        if earlier["settings"].get(name) != value:
          raise errors.UsageError(
            f"{path}: the runs here have {name} "
            f"{earlier['settings'].get(name)!r}, but now it is {value!r}; "
            "choose another --output_dir."
          )
      # The latest checkpoint of a directory may have become another one.
      self._settings = dataclasses.replace(
        settings, checkpoint=earlier["checkpoint"]
      )

  def directory(self, run: plan.Run) -> pathlib.Path:
    return self.output_dir / run.name

  def result(self, run: plan.Run) -> dict[str, Any] | None:
    """Returns the content of a run's `result.json`, None if it has none."""
    path = self.directory(run) / _RESULT
    return files.read_json(path) if path.exists() else None

  def execute(
    self,
    worker: worker_process.WorkerProcess,
    progress: progress_lib.SweepProgress,
  ) -> Outcome:
    """Does what is not done yet.

    Args:
      worker: Does the runs.
      progress: Is told of every one.

    Raises:
      UsageError: If the input is at fault, before anything is written.
    """
    results, failures = {}, {}
    checked = False
    for run in self.runs:
      result = self.result(run)
      if result is None:
        if not checked:
          self._check(worker, run, progress)
          checked = True
        progress.start(run)
        try:
          result = worker.run(
            self._job("train", run), lambda message: progress.step(**message)
          )
        except worker_process.JobFailed as error:
          failures[run] = f"{error}; see {self.directory(run) / 'log.txt'}"
          progress.finish(run, failure=failures[run])
          continue
        progress.finish(run, result=result)
      else:
        progress.skip(run, result)
      results[run] = result
    return Outcome(results, failures)

  def predict(
    self,
    worker: worker_process.WorkerProcess,
    run: plan.Run,
    ax_data_dir: str,
    progress: progress_lib.SweepProgress,
  ) -> bool:
    """Predicts the test sets with a finished run, unless it has already.

    Args:
      worker: Does it.
      run: The run.
      ax_data_dir: The data of AX, for MNLI; may be empty.
      progress: Is told of scores of test sets that have labels.

    Returns:
      Whether it succeeded.
    """
    path = self.directory(run) / _TEST_RESULT
    content = files.read_json(path) if path.exists() else {}
    if content.get("ax_data_dir") != ax_data_dir:
      progress.start(run)
      job = self._job("predict", run) | {"ax_data_dir": ax_data_dir}
      try:
        scores = worker.run(job, lambda message: progress.step(**message))
      except worker_process.JobFailed as error:
        progress.say(f"{run.name}: no predictions: {error}")
        return False
      content = {"ax_data_dir": ax_data_dir, "scores": scores}
      files.write_json(path, content)
    for split, scores in content["scores"].items():
      shown = ", ".join(
        f"{name} {progress_lib.show_score(value)}"
        for name, value in scores.items()
      )
      progress.say(f"{run.name}: {split} {shown}")
    return True

  def _job(self, kind: str, run: plan.Run) -> dict[str, Any]:
    return {
      "kind": kind,
      "settings": dataclasses.asdict(self._settings),
      "run": dataclasses.asdict(run),
      "directory": str(self.directory(run)),
    }

  def _check(self, worker, run, progress) -> None:
    """Checks the input, and writes down what the sweep is made of."""
    progress.say("starting TensorFlow and checking the input ...")
    try:
      checkpoint = worker.run(self._job("check", run), lambda message: None)
    except worker_process.JobFailed as error:
      raise errors.UsageError(f"the first run cannot start: {error}") from error
    given = dataclasses.asdict(self._settings)
    path = self.output_dir / _SETTINGS
    if not path.exists():
      files.write_json(path, {"settings": given, "checkpoint": checkpoint})
      self._settings = dataclasses.replace(
        self._settings, checkpoint=checkpoint
      )
