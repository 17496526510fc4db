"""How far runs are and how long the rest will take. Imports no TensorFlow.

On a terminal this is a live display: a bar for each active run, and one for all
if there are several. Elsewhere, for example in a log, it is plain lines: how
far a run is from time to time, and how it ended.
"""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import datetime
import time
from typing import Any

from rich import console as rich_console
from rich import progress as rich_progress
from rich import table as rich_table

from swe_tf import errors
from swe_tf import messages

_SHARED = "shared"
# The speed is measured over this window: longer than a compile, but short
# enough to follow a change of phase.
_WINDOW_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
  """What a run reports after each training loop; it is in `progress.json`."""

  step: int  # The number of updates made, of `steps`.
  steps: int
  phase: str = ""  # `shared` or `unshared`; empty if it never shares.
  untie_step: int | None = None  # Tau; None if it is not known yet.
  loss: float | None = None
  tokens_per_step: int = 0  # 0 if unknown.
  # What is left, in steps as costly as the last; None if all cost the same.
  steps_left: float | None = None
  text: str = ""  # What else is going on, such as "evaluating".

  def describe(self, steps_per_second: float | None = None) -> str:
    """Returns a line for people, with what matters most first.

    >>> status = Status(step=14, steps=700, phase="shared", untie_step=70)
    >>> status.describe(4.0)
    '14 of 700, 0:02:52 left, shared, 56 steps to untying'
    """
    parts, tau = [f"{self.step:,} of {self.steps:,}"], self.untie_step
    if steps_per_second:
      left = self.steps_left
      left = self.steps - self.step if left is None else left
      parts.append(f"{show_time(left / steps_per_second)} left")
    if self.phase == _SHARED:
      parts.append(_SHARED)
      if tau is not None:
        parts.append(f"{tau - self.step:,} steps to untying")
    elif self.phase:
      parts.append(self.phase if tau is None else f"untied after step {tau:,}")
    if self.loss is not None:
      parts.append(f"loss {self.loss:.3f}")
    if steps_per_second and self.tokens_per_step:
      parts.append(f"{self.tokens_per_step * steps_per_second:,.0f} tokens/s")
    return ", ".join([*parts, *filter(None, [self.text])])


def report_loss(
  trainer: Any, report: Callable[[Status], Any]
) -> Callable[[Any], None]:
  """Returns an orbit action that reports how far a trainer is.

  It reads only what the trainer has logged anyway.
  """
  from swe_tf.configs import cost  # Imports TensorFlow.
  from swe_tf.configs import experiment

  config = trainer.config

  def action(output) -> None:
    tau, data = output.get("sharing/untie_step"), config.task.train_data
    step, left = int(trainer.global_step.numpy()), None
    # Others have one phase; of an encoder from outside the cost is not known.
    if isinstance(config, experiment.SharingExperimentConfig):
      with contextlib.suppress(errors.UsageError):
        left = cost.steps_left(config, step)
    report(
      Status(
        step=step,
        steps=config.trainer.train_steps,
        phase=trainer.phase if "sharing/phase" in output else "",
        untie_step=None if tau is None else int(tau),
        loss=float(output["training_loss"]),
        tokens_per_step=data.global_batch_size * getattr(data, "seq_length", 0),
        steps_left=left,
      )
    )

  return action


def show_time(seconds: float | None) -> str:
  """Returns h:mm:ss, or a question mark for an unknown time."""
  return "?" if seconds is None else str(datetime.timedelta(0, round(seconds)))


class Progress(contextlib.AbstractContextManager["Progress"]):
  """The display of some runs; `bars` is what a terminal shows."""

  def __init__(self, console: rich_console.Console, costs: Mapping[str, float]):
    """Initializes the display.

    `costs` are those of the runs by name: FLOPs, or 1 if all are alike.
    """
    self._console, self._costs = console, costs
    self._began = self._said = time.monotonic()
    # The fraction of a run that is done, and that was done when it started.
    self._part = dict.fromkeys(costs, 0.0)
    self._part_before: dict[str, float] = {}
    # The time and the phase of a run's last line in the log, and the time of
    # its last news.
    self._last_line: dict[str, tuple[float, str]] = {}
    self._last_news: dict[str, float] = {}
    # No name is cut shorter; a wide terminal has room for long bars.
    name_width = min(24, max(map(len, costs), default=0))
    self.bars = rich_progress.Progress(
      rich_progress.TextColumn(
        "{task.description}",
        markup=False,
        table_column=rich_table.Column(no_wrap=True, min_width=name_width),
      ),
      rich_progress.BarColumn(30 if console.width > 110 else 8),
      rich_progress.TextColumn("{task.fields[note]}", markup=False),
      console=console,
      transient=True,
      refresh_per_second=2,
      speed_estimate_period=_WINDOW_SECONDS,
      get_time=lambda: time.monotonic(),
      disable=not console.is_terminal,
    )
    self._bar_of: dict[str, rich_progress.TaskID] = {}
    has_sum = len(costs) > 1
    self._bar_of_all = self.bars.add_task("", note="", visible=has_sum)
    self._refresh()

  def __enter__(self):
    self.bars.start()
    return self

  def __exit__(self, *unused_exception):
    self.bars.stop()

  def say(self, text: str) -> None:
    self._said = time.monotonic()
    self._console.print(text, highlight=False, soft_wrap=True, markup=False)

  def tick(self) -> None:
    """Notes that time passes: a log must not be silent while runs start."""
    now = time.monotonic()
    spent = now - self._began
    is_log = not self._console.is_terminal
    if is_log and now - self._said >= messages.pause(spent):
      self.say(f"{show_time(spent)} so far, waiting for news of the runs")

  def start(self, name: str, step: int = 0, steps: int = 0) -> None:
    """Notes that a run starts, or resumes after a step."""
    self._part_before[name] = self._part[name] = step / steps if steps else 0.0
    if name in self._bar_of:  # Continuous fine-tuning starts again.
      self.bars.remove_task(self._bar_of[name])
    self._bar_of[name] = self.bars.add_task(
      name, total=steps or None, completed=step, note="starting"
    )

  def step(self, name: str, status: Status) -> None:
    """Notes how far a run is and what is going on."""
    if name not in self._bar_of:
      self.start(name, status.step, status.steps)
    if not status.steps:
      return  # It has only started.
    part = self._part[name] = status.step / status.steps
    # A killed run goes on from its checkpoint, behind what it had reported.
    self._part_before[name] = min(part, self._part_before[name])
    bar = self._bar_of[name]
    self.bars.update(bar, total=status.steps, completed=status.step)
    (speed,) = (task.speed for task in self.bars.tasks if task.id == bar)
    text = status.describe(speed)
    self.bars.update(bar, note=text)
    now = time.monotonic()
    then, phase = self._last_line.get(name, (self._began, status.phase))
    # The next news will probably take as long as this took.
    following = 2 * now - self._last_news.get(name, now)
    self._last_news[name] = now
    is_due = following - then >= messages.pause(now - self._began)
    if not self._console.is_terminal and (is_due or phase != status.phase):
      self._last_line[name] = now, status.phase
      self.say(f"{name}: {text}")
    self._refresh()

  def _time_left(self) -> float | None:
    """Returns the seconds that the rest will take at the speed so far."""
    done = sum(
      (self._part[name] - before) * self._costs[name]
      for name, before in self._part_before.items()
    )
    left = sum((1 - self._part[name]) * c for name, c in self._costs.items())
    return left * (time.monotonic() - self._began) / done if done else None

  def end(self, name: str, text: str, counts: bool = True) -> None:
    """Notes that a run is over; `counts` if it says something of the speed."""
    self._part[name] = 1.0
    if not counts:
      self._part_before[name] = 1.0
    if name in self._bar_of:
      self.bars.remove_task(self._bar_of.pop(name))
    self._refresh()
    left = self._time_left()
    rest = f", {show_time(left)} left" if left else ""
    self.say(f"{name}: {text}{rest}")

  def _refresh(self) -> None:
    parts = (self._part[name] * cost for name, cost in self._costs.items())
    ended = {name for name, part in self._part.items() if part == 1.0}
    self.bars.update(
      self._bar_of_all,
      total=sum(self._costs.values()) or 1.0,
      completed=sum(parts),
      description=f"{len(ended - {*self._bar_of})} of {len(self._part)} runs",
      note=f"{show_time(self._time_left())} left",
    )
