"""What a run tells people: a line for each event, without what libraries say.

`say` prints a line. Within `quietly` nothing else is printed or logged below an
error: neither Orbit's metrics, which it prints and logs, nor TensorFlow's hints
on checkpoints. What is written to `out` is always seen.
"""

from collections.abc import Iterator
import contextlib
import functools
import logging as standard_logging
import os
import shlex
import sys
import threading
import time
from typing import Any

from absl import logging
from rich import console as rich_console
from rich import filesize

_PAUSE_SECONDS = 5.0
_BEGAN = time.monotonic()

_streams: list[Any] = []


class _Out:
  """Standard output as it was outside of `quietly`."""

  def __getattr__(self, name: str) -> Any:
    return getattr(_streams[-1] if _streams else sys.stdout, name)


out: Any = _Out()


def say(line: str) -> None:
  print(line, file=out, flush=True)


def say_next(command: str, **flags: Any) -> None:
  """Prints the command that users most likely want now."""
  words = [f"--{name}={value}" for name, value in flags.items()]
  say(f"next: {command} {shlex.join(words)}")


def size(count: float) -> str:
  """Formats a number of bytes.

  >>> size(1_345_000_000)
  '1.34 GB'
  """
  return filesize.decimal(round(count), precision=2)


@functools.cache
def console() -> rich_console.Console:
  """Returns the one console: only its own displays can be nested."""
  return rich_console.Console(file=out, highlight=False)


def is_quiet() -> bool:
  return bool(_streams)


def warn(line: str) -> None:
  say(f"WARNING: {line}")


def pause(spent: float) -> float:
  """Returns how long a log may be silent, in the seconds spent so far.

  After five minutes it is longer and longer, so that a day does not fill it.
  """
  return max(_PAUSE_SECONDS, spent / 60)


@contextlib.contextmanager
def during(
  text: str,
  on: rich_console.Console | None = None,
  announce: bool = True,
  again: bool = False,
) -> Iterator[None]:
  """Shows what takes long: a spinner; off a terminal, the seconds so far.

  `announce` says so at once, and not only if it does take long. `again` is for
  a loop of steps, one of many: it has a bar on a terminal, and in a log its
  lines get rarer with the time of the whole process.
  """
  shown = on or console()
  if shown.is_terminal:
    with contextlib.nullcontext() if again else shown.status(text):
      yield
    return
  done, begin = threading.Event(), time.monotonic()
  if announce:
    shown.print(f"{text} ...", soft_wrap=True)

  def tick() -> None:
    since = _BEGAN if again else begin
    while not done.wait(pause(time.monotonic() - since)):
      spent = time.monotonic() - begin
      shown.print(f"{text}: {spent:.0f} s", soft_wrap=True)

  thread = threading.Thread(target=tick, daemon=True)
  thread.start()
  try:
    yield
  finally:
    done.set()
    thread.join()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
  """Drops what libraries print, and log below an error, in the block."""
  before = logging.get_verbosity()
  tensorflow = standard_logging.getLogger("tensorflow")  # Apart from absl's.
  level = tensorflow.level
  _streams.append(sys.stdout)
  try:
    logging.set_verbosity(logging.ERROR)
    tensorflow.setLevel(standard_logging.ERROR)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
      yield
  finally:
    _streams.pop()
    logging.set_verbosity(before)
    tensorflow.setLevel(level)
