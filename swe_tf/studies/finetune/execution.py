"""Executes the protocol: checks, trains, and predicts the test sets.

    DIR/sweep.json      what the runs have in common
    DIR/lr_*_seed_*/    a run; see `swe_tf.studies.directory`. The selected one
                        gets a `test_result.json` once it has predicted
    DIR/table.txt       what was printed
    DIR/selection.json  what was selected

Imports no TensorFlow: the worker does.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import prepared_data
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import launcher
from swe_tf.studies import progress as progress_lib
from swe_tf.studies import sweep as sweep_lib
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import table as table_lib

JOBS = "swe_tf.studies.finetune.jobs"


class FineTuning:
  """The runs of one task and their directory."""

  def __init__(
    self,
    settings: protocol.Settings,
    runs: Sequence[protocol.Run],
    output_dir: files.PathLike,
    data: prepared_data.PreparedData,
    ax_data_dir: str = "",
  ):
    """Initializes the runs; writes nothing.

    Args:
      settings: What the runs have in common.
      runs: The runs, in order.
      output_dir: The directory. It may hold runs with the same settings.
      data: What is in `settings.data_dir`.
      ax_data_dir: The data of AX, for MNLI; may be empty.

    Raises:
      UsageError: If `output_dir` holds runs with other settings.
    """
    self.runs = runs
    self.output_dir = files.as_path(output_dir)
    self.data = data
    self.settings = settings
    # Whether `run` has selected a run.
    self.has_selected = False
    self._ax_data_dir = ax_data_dir
    # The content of `sweep.json`, until it is written.
    self._begin: dict[str, Any] | None = None
    self._file = self.output_dir / "sweep.json"
    if self._file.exists():
      earlier, checkpoint = _read_sweep(self._file)
      directory_lib.refuse_other(
        self._file, dataclasses.asdict(earlier), dataclasses.asdict(settings)
      )
      self._keep_to(checkpoint)

  def _keep_to(self, checkpoint: str) -> None:
    # The latest checkpoint of a directory may change between two calls.
    self.settings = dataclasses.replace(self.settings, checkpoint=checkpoint)

  def _arguments(self, run: protocol.Run) -> dict[str, Any]:
    settings = dataclasses.asdict(self.settings)
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
    """Checks the input and fixes the checkpoint; writes nothing."""
    try:
      checkpoint = worker.run(f"{JOBS}:check", self._arguments(self.runs[0]))
    except launcher.JobFailed as error:
      raise errors.UsageError(
        f"the first run of {self.data.task} cannot start: {error}"
      ) from error
    if not self._file.exists():
      self._begin = {
        "settings": dataclasses.asdict(self.settings),
        "checkpoint": checkpoint,
      }
      self._keep_to(checkpoint)

  @property
  def checkpoint(self) -> str:
    """The checkpoint that is fine-tuned."""
    return self.settings.checkpoint

  @property
  def is_trained(self) -> bool:
    """Whether every run has a result."""
    return len(self.sweep().results()) == len(self.runs)

  def run(self, worker: launcher.Worker, console) -> bool:
    """Trains the runs without a result, selects one, predicts the test sets.

    Prints the table, and writes `table.txt` and `selection.json`.

    Args:
      worker: Does the work.
      console: Where to print.

    Returns:
      Whether everything succeeded.
    """
    if self._begin is not None:
      files.write_json(self._file, self._begin)
      self._begin = None
    metric, sweep = protocol.selecting_metric(self.data), self.sweep()
    with sweep.progress(
      console, lambda result: table_lib.summarize(result, metric)
    ) as progress:
      failures = sweep.execute([worker], progress)
      rows = table_lib.make_rows(self.runs, sweep.results(), failures)
      choice = table_lib.choose(rows, metric)
      succeeded = not failures
      if choice and (self.data.splits_of("test") or self._ax_data_dir):
        succeeded &= self._predict(worker, choice.run, progress)
    title = (
      f"{self.data.task}, {self.settings.init} weights, "
      f"{self.settings.epochs:g} epochs"
    )
    table = table_lib.render(rows, choice, metric, title)
    console.print(table)
    if choice is None:
      return False
    files.write_text(self.output_dir / "table.txt", table_lib.as_text(table))
    files.write_json(
      self.output_dir / "selection.json", table_lib.selection(choice, metric)
    )
    self.has_selected = True
    console.print(
      f"selected {self.output_dir / choice.run.name}", soft_wrap=True
    )
    return succeeded

  def _predict(
    self,
    worker: launcher.Worker,
    run: protocol.Run,
    progress: progress_lib.Progress,
  ) -> bool:
    """Predicts the test sets with a finished run, unless it has already."""
    directory = self.output_dir / run.name
    path = directory / "test_result.json"
    content = files.read_json(path) if path.exists() else {}
    if content.get("ax_data_dir") != self._ax_data_dir:
      progress.say(f"{run.name}: predicting the test set ...")
      content = {"ax_data_dir": self._ax_data_dir}
      arguments = self._arguments(run) | content
      try:
        content["scores"] = worker.run(f"{JOBS}:predict", arguments, directory)
      except launcher.JobFailed as error:
        progress.say(f"{run.name}: no predictions: {error}")
        return False
      files.write_json(path, content)
    for split, scores in content["scores"].items():
      shown = (
        f"{name} {table_lib.show_score(v)}" for name, v in scores.items()
      )
      progress.say(f"{run.name}: {split} {', '.join(shown)}")
    return True


def _read_sweep(path: files.Path) -> tuple[protocol.Settings, str]:
  """Returns the settings and the checkpoint of an earlier `swe finetune`."""
  content = files.read_json(path)
  try:
    settings = protocol.Settings(**content["settings"])
    return settings, str(content["checkpoint"])
  except (KeyError, TypeError) as error:
    raise errors.UsageError(
      f"{path} was not written by `swe finetune` (it lacks settings or a "
      "checkpoint); choose another --output_dir."
    ) from error
