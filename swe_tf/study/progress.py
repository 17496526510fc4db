"""Tells a person how far a study is and how long it will take."""

from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import time
from typing import Any

from rich import console as rich_console
from rich import live
from rich import table as rich_table


def show_time(seconds: float | None) -> str:
  """Returns h:mm:ss, or a question mark for a time that is not known."""
  if seconds is None:
    return "?"
  return str(datetime.timedelta(seconds=round(seconds)))


def show_metrics(result: Mapping[str, Any]) -> str:
  return ", ".join(
    f"{name} {value:.4f}" for name, value in result["metrics"].items()
  )


class SweepProgress:
  """A live table of the runs; without a terminal, a line for each that ends."""

  def __init__(self, console: rich_console.Console, runs: Sequence[Any]):
    """Initializes the table.

    Args:
      console: Where it is shown.
      runs: The runs, with `name`, `steps` and `flops`.
    """
    self._console = console
    self._runs = runs
    self._state = {run.name: "waiting" for run in runs}
    self._step = dict.fromkeys(self._state, 0)
    self._note = dict.fromkeys(self._state, "")
    self._begin: dict[str, tuple[float, int]] = {}
    self._first = time.time()
    self._done_flops = 0.0  # Of this call, not of earlier ones.
    self._live = live.Live(
      get_renderable=self._table,
      console=console,
      refresh_per_second=1,
      transient=True,
      auto_refresh=console.is_terminal,
    )

  def __enter__(self):
    self._live.start()
    return self

  def __exit__(self, *unused_exception):
    self._live.stop()

  def say(self, text: str) -> None:
    self._console.print(text, highlight=False, soft_wrap=True)

  def skip(self, run, result: Mapping[str, Any]) -> None:
    """Notes a run that was finished before."""
    self._state[run.name] = "finished"
    self._step[run.name] = run.steps
    self._note[run.name] = show_metrics(result)
    self.say(f"{run.name}: {show_metrics(result)} (finished before)")

  def start(self, run) -> None:
    self._state[run.name] = "running"
    self._begin[run.name] = (time.time(), -1)

  def step(self, run, step: int) -> None:
    """Notes how far a run is; the first time, where it began."""
    begin, first = self._begin[run.name]
    if first < 0:
      first = step
      self._begin[run.name] = begin, first
    if step > self._step[run.name]:
      self._step[run.name] = step
      self._done_flops = sum(
        (self._step[r.name] - max(self._begin[r.name][1], 0))
        / r.steps
        * r.flops
        for r in self._runs
        if r.name in self._begin
      )

  def finish(
    self, run, result: Mapping[str, Any] | None, failure: str = ""
  ) -> None:
    """Notes the end of a run."""
    self._state[run.name] = "failed" if failure else "finished"
    self.step(run, run.steps)
    text = f"failed: {failure}"
    if result:
      self._note[run.name] = show_metrics(result)
      text = f"{show_metrics(result)} ({result['seconds']:.0f} s)"
    left = self.time_left()
    self.say(
      f"{run.name}: {text}" + (f", {show_time(left)} left" if left else "")
    )

  def time_left(self) -> float | None:
    """Returns the seconds that the rest takes at the speed so far."""
    left = sum(
      (1 - self._step[run.name] / run.steps) * run.flops
      for run in self._runs
      if self._state[run.name] in ("waiting", "running")
    )
    if not self._done_flops:
      return None
    return left * (time.time() - self._first) / self._done_flops

  def _table(self) -> rich_table.Table:
    done = sum(state == "finished" for state in self._state.values())
    table = rich_table.Table(
      title=f"{done} of {len(self._runs)} runs, "
      f"{show_time(self.time_left())} left"
    )
    for column in ("run", "state", "step", "metrics"):
      table.add_column(column)
    for run in self._runs:
      state = self._state[run.name]
      table.add_row(
        run.name,
        state,
        f"{self._step[run.name]:,} of {run.steps:,}",
        self._note[run.name],
        style="bold" if state == "running" else "",
      )
    return table
