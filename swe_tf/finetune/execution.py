"""How the protocol is run: checked, trained, and the test sets predicted.

    DIR/sweep.json      what the runs have in common
    DIR/lr_*_seed_*/    a run; see `swe_tf.runs.directory`. The selected one has
                        a `test_result.json` when it has predicted

Imports no TensorFlow: the worker does.
"""

from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.finetune import protocol
from swe_tf.finetune import table
from swe_tf.runs import directory as directory_lib
from swe_tf.runs import launcher
from swe_tf.runs import progress as progress_lib
from swe_tf.runs import sweep as sweep_lib

JOBS = "swe_tf.finetune.jobs"


class FineTuning:
  """The runs of one task and their directory."""

  def __init__(
    self,
    settings: protocol.Settings,
    runs: Sequence[protocol.Run],
    output_dir: files.PathLike,
  ):
    """Initializes the runs; writes nothing.

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
    self._file = self.output_dir / "sweep.json"
    if self._file.exists():
      earlier = files.read_json(self._file)
      directory_lib.refuse_other(
        self._file,
        dataclasses.asdict(protocol.Settings(**earlier["settings"])),
        dataclasses.asdict(settings),
      )
      self._keep_to(earlier["checkpoint"])

  def _keep_to(self, checkpoint: str) -> None:
    # The latest checkpoint of a directory may become another one.
    self._settings = dataclasses.replace(self._settings, checkpoint=checkpoint)

  def _arguments(self, run: protocol.Run) -> dict[str, Any]:
    settings = dataclasses.asdict(self._settings)
    return {"settings": settings, "run": dataclasses.asdict(run)}

  def sweep(self) -> sweep_lib.Sweep:
    """Returns the training as a sweep."""
    train = f"{JOBS}:train"
    runs = [
      sweep_lib.Run(name=r.name, function=train, arguments=self._arguments(r))
      for r in self.runs
    ]
    return sweep_lib.Sweep(runs, self.output_dir)

  def check(self, worker: launcher.Worker) -> None:
    """Checks the input, then writes down what the runs have in common."""
    try:
      checkpoint = worker.run(f"{JOBS}:check", self._arguments(self.runs[0]))
    except launcher.JobFailed as error:
      raise errors.UsageError(f"the first run cannot start: {error}") from error
    if not self._file.exists():
      settings = dataclasses.asdict(self._settings)
      content = {"settings": settings, "checkpoint": checkpoint}
      files.write_json(self._file, content)
      self._keep_to(checkpoint)

  def predict(
    self,
    worker: launcher.Worker,
    run: protocol.Run,
    ax_data_dir: str,
    progress: progress_lib.Progress,
  ) -> bool:
    """Predicts the test sets with a finished run, unless it has already.

    Args:
      worker: Does it.
      run: The run.
      ax_data_dir: The data of AX, for MNLI; may be empty.
      progress: Shows the scores of test sets that have labels.

    Returns:
      Whether it succeeded.
    """
    directory = self.output_dir / run.name
    path = directory / "test_result.json"
    content = files.read_json(path) if path.exists() else {}
    if content.get("ax_data_dir") != ax_data_dir:
      progress.say(f"{run.name}: predicting the test set ...")
      content = {"ax_data_dir": ax_data_dir}
      arguments = self._arguments(run) | content
      try:
        content["scores"] = worker.run(f"{JOBS}:predict", arguments, directory)
      except launcher.JobFailed as error:
        progress.say(f"{run.name}: no predictions: {error}")
        return False
      files.write_json(path, content)
    for split, scores in content["scores"].items():
      shown = (f"{name} {table.show_score(v)}" for name, v in scores.items())
      progress.say(f"{run.name}: {split} {', '.join(shown)}")
    return True
