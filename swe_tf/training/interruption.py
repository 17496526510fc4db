"""SIGTERM and Ctrl-C: finish the loop, save a checkpoint, then exit.

A program that trains uses `watch`, and the trainer checks `requested` after
every loop of `trainer.steps_per_loop` steps. A second signal ends the program
at once, as it would without `watch`.
"""

from collections.abc import Iterator
import contextlib
import signal
import types

# "Try again later" in sysexits.h: a scheduler may start the run again.
STATUS = 75

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_requested: list[int] = []


def requested() -> bool:
  """Returns whether a signal asked the program to end."""
  return bool(_requested)


@contextlib.contextmanager
def watch() -> Iterator[None]:
  """Catches the signals in the block; works only in the main thread."""
  earlier = {number: signal.getsignal(number) for number in _SIGNALS}

  def restore() -> None:
    for number, handler in earlier.items():
      signal.signal(number, handler)

  def note(number: int, frame: types.FrameType | None) -> None:
    del frame
    restore()  # The next one is not caught.
    _requested.append(number)
    name = signal.Signals(number).name
    print(
      f"{name}: saving a checkpoint after this loop, then exiting; repeat to "
      "exit at once.",
      flush=True,
    )

  for number in _SIGNALS:
    signal.signal(number, note)
  try:
    yield
  finally:
    restore()
    _requested.clear()
