"""How far a run is, in words and numbers. Imports no TensorFlow."""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import datetime
import time
from typing import Any

SHARED = "shared"
# The speed is measured over this window: longer than a compile, but short
# enough to follow a change of phase.
_WINDOW_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
  """What a run reports after each training loop.

  Attributes:
    step: The number of updates made.
    steps: The number of updates of the whole run.
    phase: `shared` or `unshared`; empty for a run that never shares.
    untie_step: Tau; None if it is not known yet.
    loss: The training loss.
    tokens_per_step: How many tokens an update reads; 0 if unknown.
    text: What else is going on, such as "evaluating".
  """

  step: int
  steps: int
  phase: str = ""
  untie_step: int | None = None
  loss: float | None = None
  tokens_per_step: int = 0
  text: str = ""

  def describe(self, steps_per_second: float | None = None) -> str:
    """Returns a line for people, with what matters most first.

    >>> status = Status(step=14, steps=700, phase="shared", untie_step=70)
    >>> status.describe(4.0)
    '14 of 700, 0:02:52 left, shared, 56 steps to untying'

    Args:
      steps_per_second: The speed; None if unknown.
    """
    parts = [f"{self.step:,} of {self.steps:,}"]
    if steps_per_second:
      left = (self.steps - self.step) / steps_per_second
      parts.append(f"{show_time(left)} left")
    if self.phase == SHARED:
      parts.append(SHARED)
      if self.untie_step is not None:
        parts.append(f"{self.untie_step - self.step:,} steps to untying")
    elif self.phase:
      tau = self.untie_step
      parts.append(self.phase if tau is None else f"untied after step {tau:,}")
    if self.loss is not None:
      parts.append(f"loss {self.loss:.3f}")
    if steps_per_second and self.tokens_per_step:
      tokens = self.tokens_per_step * steps_per_second
      parts.append(f"{tokens:,.0f} tokens/s")
    if self.text:
      parts.append(self.text)
    return ", ".join(parts)


def from_table(table: Mapping[str, Any]) -> Status:
  """Returns the status in a table that may have other fields as well."""
  names = [field.name for field in dataclasses.fields(Status)]
  return Status(**{name: table[name] for name in names if name in table})


def show_time(seconds: float | None) -> str:
  """Returns h:mm:ss, or a question mark for an unknown time."""
  if seconds is None:
    return "?"
  return str(datetime.timedelta(seconds=round(seconds)))


class Speed:
  """Recent steps per second: starting and compiling soon stop counting."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._seen: collections.deque[tuple[float, int]] = collections.deque()

  def measure(self, step: int) -> float | None:
    """Returns the speed after `step`; None if it is not known yet."""
    if self._seen and step < self._seen[-1][1]:
      self._seen.clear()  # It was restarted from a checkpoint.
    self._seen.append((self._clock(), step))
    now, _ = self._seen[-1]
    while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_SECONDS:
      self._seen.popleft()
    then, first = self._seen[0]
    if now <= then or step <= first:
      return None
    return (step - first) / (now - then)
