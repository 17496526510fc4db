"""Shows how far runs are and how long the rest will take.

On a terminal this is a live display: a bar for each active run, and one for all
if there are several. Elsewhere, for example in a log, it is plain lines: how
far a run is from time to time, and how it ended.
"""

from collections.abc import Callable, Mapping
import contextlib
import time
from typing import Any

from rich import console as rich_console
from rich import progress as rich_progress
from rich import table as rich_table

from swe_tf.studies import status as status_lib

Result = Mapping[str, Any]

# In a log a run has a line every half minute, and when its phase changes; after
# about an hour, whenever another 1% of the time so far has passed.
_LINE_SECONDS = 30.0
_LINE_PART = 0.01
_NAME_WIDTH = 24  # In columns; no name is cut shorter.
_WIDE = 110  # In columns; a wider terminal has room for long bars.


class Progress(contextlib.AbstractContextManager["Progress"]):
  """The display of some runs.

  Attributes:
    bars: What is shown on a terminal.
  """

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
      summarize: Summarizes a run's `result.json` in a few words.
    """
    self._console = console
    self._costs = costs
    self._summarize = summarize
    self._began = time.monotonic()
    # The fraction of a run that is done, and that was done when it started.
    self._part = dict.fromkeys(costs, 0.0)
    self._part_before: dict[str, float] = {}
    self._speed = {name: status_lib.Speed() for name in costs}
    # The time and the phase of a run's last line in the log.
    self._last_line: dict[str, tuple[float, str]] = {}
    self.bars = rich_progress.Progress(
      rich_progress.TextColumn(
        "{task.description}",
        markup=False,
        table_column=rich_table.Column(
          no_wrap=True,
          min_width=min(_NAME_WIDTH, max(map(len, costs), default=0)),
        ),
      ),
      rich_progress.BarColumn(30 if console.width > _WIDE else 8),
      rich_progress.TextColumn("{task.fields[note]}", markup=False),
      console=console,
      transient=True,
      refresh_per_second=2,
      disable=not console.is_terminal,
    )
    self._bar_of_all: rich_progress.TaskID | None = None
    if len(costs) > 1:
      self._bar_of_all = self.bars.add_task("", total=1.0, note="")
    self._bar_of: dict[str, rich_progress.TaskID] = {}
    self._refresh()

  def __enter__(self):
    self.bars.start()
    return self

  def __exit__(self, *unused_exception):
    self.bars.stop()

  def say(self, text: str) -> None:
    """Prints a line."""
    self._console.print(text, highlight=False, soft_wrap=True, markup=False)

  def skip(self, name: str, result: Result) -> None:
    """Notes a run that was finished before."""
    self._part_before[name] = self._part[name] = 1.0
    self._refresh()
    self.say(f"{name}: {self._summarize(result)} (finished before)")

  def start(self, name: str, step: int = 0, steps: int = 0) -> None:
    """Notes that a run starts, or resumes after a step."""
    part = step / steps if steps else 0.0
    self._part_before[name] = self._part[name] = part
    if name in self._bar_of:  # Continuous fine-tuning starts again.
      self.bars.remove_task(self._bar_of[name])
    bar = self.bars.add_task(name, total=1.0, note="starting")
    self.bars.update(bar, completed=part)
    self._bar_of[name] = bar

  def step(self, name: str, status: status_lib.Status) -> None:
    """Notes how far a run is and what is going on."""
    if name not in self._bar_of:
      self.start(name, status.step, status.steps)
    if not status.steps:
      return  # It has only started.
    self._part[name] = status.step / status.steps
    text = status.describe(self._speed[name].measure(status.step))
    self.bars.update(self._bar_of[name], completed=self._part[name], note=text)
    if not self._console.is_terminal:
      self._log(name, status.phase, text)
    self._refresh()

  def _log(self, name: str, phase: str, text: str) -> None:
    """Prints a line, unless there was one a short time ago."""
    now = time.monotonic()
    pause = max(_LINE_SECONDS, _LINE_PART * (now - self._began))
    then, phase_then = self._last_line.get(name, (self._began, phase))
    if now - then >= pause or phase != phase_then:
      self._last_line[name] = now, phase
      self.say(f"{name}: {text}")

  def finish(self, name: str, result: Result) -> None:
    """Notes that a run has finished."""
    self._end(name, f"{self._summarize(result)} ({result['seconds']:.0f} s)")

  def fail(self, name: str, reason: object) -> None:
    """Notes that a run has failed."""
    self._part_before[name] = 1.0  # It says nothing about the speed.
    self._end(name, f"failed: {reason}")

  def time_left(self) -> float | None:
    """Returns the seconds that the rest will take at the speed so far."""
    done = sum(
      (self._part[name] - before) * self._costs[name]
      for name, before in self._part_before.items()
    )
    left = sum((1 - self._part[name]) * c for name, c in self._costs.items())
    return left * (time.monotonic() - self._began) / done if done else None

  def _end(self, name: str, text: str) -> None:
    self._part[name] = 1.0
    if name in self._bar_of:
      self.bars.remove_task(self._bar_of.pop(name))
    self._refresh()
    left = self.time_left()
    rest = f", {status_lib.show_time(left)} left" if left else ""
    self.say(f"{name}: {text}{rest}")

  def _refresh(self) -> None:
    if self._bar_of_all is None:
      return
    whole = sum(self._costs.values())
    parts = (self._part[name] * cost for name, cost in self._costs.items())
    ended = {name for name, part in self._part.items() if part == 1.0}
    self.bars.update(
      self._bar_of_all,
      completed=sum(parts) / (whole or 1.0),
      description=f"{len(ended - {*self._bar_of})} of {len(self._part)} runs",
      note=f"{status_lib.show_time(self.time_left())} left",
    )
