"""Shows how far runs are and how long the rest takes.

A live display on a terminal: a bar for all runs, and one for each that is at
work. Without a terminal there are only the lines for runs that have ended.
"""

from collections.abc import Callable, Mapping
import contextlib
import datetime
import time
from typing import Any

from rich import console as rich_console
from rich import progress as rich_progress

Result = Mapping[str, Any]


def show_time(seconds: float | None) -> str:
  """Returns h:mm:ss, or a question mark for a time that is not known."""
  if seconds is None:
    return "?"
  return str(datetime.timedelta(seconds=round(seconds)))


class Progress(contextlib.AbstractContextManager["Progress"]):
  """The display of some runs."""

  def __init__(
    self,
    console: rich_console.Console,
    costs: Mapping[str, float],
    summarize: Callable[[Result], str],
  ):
    """Initializes the display.

    Args:
      console: Where it is shown.
      costs: What each run costs, by name: FLOPs, or 1 if all are alike.
      summarize: Says in a few words what a run's `result.json` says.
    """
    self._console = console
    self._costs = costs
    self._summarize = summarize
    self._began = time.monotonic()
    # Which part of a run is done, and which was when this call started it.
    self._part = dict.fromkeys(costs, 0.0)
    self._part_before: dict[str, float] = {}
    self._bars = rich_progress.Progress(
      rich_progress.TextColumn("{task.description}"),
      rich_progress.BarColumn(),
      rich_progress.TextColumn("{task.fields[note]}"),
      console=console,
      transient=True,
      disable=not console.is_terminal,
    )
    self._bar_of_all = self._bars.add_task("", total=1.0, note="")
    self._bar_of: dict[str, rich_progress.TaskID] = {}
    self._refresh()

  def __enter__(self):
    self._bars.start()
    return self

  def __exit__(self, *unused_exception):
    self._bars.stop()

  def say(self, text: str) -> None:
    """Prints a line."""
    self._console.print(text, highlight=False, soft_wrap=True)

  def skip(self, name: str, result: Result) -> None:
    """Notes a run that was finished before."""
    self._part_before[name] = self._part[name] = 1.0
    self._refresh()
    self.say(f"{name}: {self._summarize(result)} (finished before)")

  def start(self, name: str, step: int = 0, steps: int = 0) -> None:
    """Notes that a run starts, or goes on after a step."""
    part = step / steps if steps else 0.0
    self._part_before[name] = self._part[name] = part
    bar = self._bars.add_task(name, total=1.0, note="starting")
    self._bars.update(bar, completed=part)
    self._bar_of[name] = bar

  def step(self, name: str, step: int, steps: int, text: str) -> None:
    """Notes how far a run is and what is going on."""
    self._part[name] = step / steps
    self._bars.update(
      self._bar_of[name],
      completed=self._part[name],
      note=f"{step:,} of {steps:,}  {text}",
    )
    self._refresh()

  def finish(self, name: str, result: Result) -> None:
    """Notes that a run has finished."""
    self._end(name, f"{self._summarize(result)} ({result['seconds']:.0f} s)")

  def fail(self, name: str, reason: object) -> None:
    """Notes that a run has failed."""
    self._part_before[name] = 1.0  # It says nothing of the speed.
    self._end(name, f"failed: {reason}")

  def time_left(self) -> float | None:
    """Returns the seconds that the rest takes at the speed so far."""
    done = sum(
      (self._part[name] - before) * self._costs[name]
      for name, before in self._part_before.items()
    )
    left = sum((1 - self._part[name]) * c for name, c in self._costs.items())
    return left * (time.monotonic() - self._began) / done if done else None

  def _end(self, name: str, text: str) -> None:
    self._part[name] = 1.0
    self._bars.remove_task(self._bar_of.pop(name))
    self._refresh()
    left = self.time_left()
    self.say(f"{name}: {text}" + (f", {show_time(left)} left" if left else ""))

  def _refresh(self) -> None:
    whole = sum(self._costs.values())
    parts = (self._part[name] * cost for name, cost in self._costs.items())
    ended = {name for name, part in self._part.items() if part == 1.0}
    self._bars.update(
      self._bar_of_all,
      completed=sum(parts) / (whole or 1.0),
      description=f"{len(ended - {*self._bar_of})} of {len(self._part)} runs",
      note=f"{show_time(self.time_left())} left",
    )
