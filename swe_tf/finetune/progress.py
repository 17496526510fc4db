"""Tells a person how far a sweep is and how long it will take."""

import datetime
from typing import Any

from rich import console as rich_console
from rich import progress as rich_progress

from swe_tf.finetune import plan


def show_score(value: float | None) -> str:
  """Returns a score with two digits, or a dash for one that does not exist."""
  return "-" if value is None else f"{value:.2f}"


class SweepProgress:
  """A bar over all runs, and a line for every run that ends.

  Without a terminal there is no bar, and the lines have the time left.
  """

  def __init__(self, console: rich_console.Console, num_runs: int, metric: str):
    self._console = console
    self._metric = metric
    self._bar = rich_progress.Progress(
      rich_progress.TextColumn("{task.description}"),
      rich_progress.BarColumn(),
      rich_progress.MofNCompleteColumn(),
      rich_progress.TextColumn("runs, time left"),
      rich_progress.TimeRemainingColumn(),
      console=console,
      # Evaluation takes a while in which nothing moves.
      speed_estimate_period=3600.0,
      transient=True,
    )
    self._task = self._bar.add_task("", total=num_runs)
    self._done = 0.0

  def __enter__(self):
    self._bar.start()
    return self

  def __exit__(self, *unused_exception):
    self._bar.stop()

  def say(self, text: str) -> None:
    self._console.print(text, highlight=False, soft_wrap=True)

  def start(self, run: plan.Run) -> None:
    self._bar.update(self._task, description=f"{run.name}  starting")
    self._name = run.name

  def step(self, step: int, steps: int, text: str, **unused_message) -> None:
    """Moves the bar; the last percent of a run is its evaluation."""
    self._bar.update(
      self._task,
      completed=self._done + 0.99 * step / steps,
      description=f"{self._name}  {text}",
    )

  def skip(self, run: plan.Run, result: dict[str, Any]) -> None:
    """Notes a run that was finished before."""
    self._done += 1
    # Not by `completed`, so that it does not count as speed.
    self._bar.reset(self._task, completed=self._done, description="")
    self.say(f"{run.name}: {self._summary(result)} (finished before)")

  def finish(
    self,
    run: plan.Run,
    result: dict[str, Any] | None = None,
    failure: str = "",
  ) -> None:
    """Notes the end of a run."""
    self._done += 1
    self._bar.update(self._task, completed=self._done)
    text = f"failed: {failure}"
    if result:
      text = f"{self._summary(result)} ({result['seconds']:.0f} s)"
    task = self._bar.tasks[0]
    if not self._console.is_terminal and task.time_remaining:
      left = datetime.timedelta(seconds=round(task.time_remaining))
      text += f", {left} left"
    self.say(f"{run.name}: {text}")

  def _summary(self, result: dict[str, Any]) -> str:
    if result["status"] != "finished":
      return f"diverged: {result['reason']}"
    score = next(iter(result["scores"].values()))[self._metric]
    return f"{self._metric} {show_score(score)}"
