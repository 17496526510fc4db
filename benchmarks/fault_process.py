"""Training processes that are cheap to start and can be harmed.

A server imports TensorFlow once, without running anything in it, and forks a
process for each call of `swe train`. Such a process goes through the command's
own `main`, receives real signals and ends with a real status.
"""

import atexit
from collections.abc import Callable, Sequence
import contextlib
import multiprocessing
from multiprocessing import connection
import os
import resource
import signal
import sys
import threading
import time

_CONTEXT = multiprocessing.get_context("forkserver")
_IMPORTED = (
  "benchmarks.fault_process",
  "official.nlp.train",
  "swe_tf.commands.train",
  "swe_tf.doctor.checks",
  "swe_tf.registry",
)
_POLL_SECONDS = 0.002
_HUNG_SECONDS = 900


def start_server() -> None:
  """Makes the server import what a process will need."""
  _CONTEXT.set_forkserver_preload(list(_IMPORTED))


def _main(
  arguments: Sequence[str],
  output: connection.Connection,
  kill_after_slots: int | None,
) -> None:
  """Runs `swe train`, as `python -m swe_tf.train` does."""
  from swe_tf import cli

  for stream in (sys.stdout, sys.stderr):
    os.dup2(output.fileno(), stream.fileno())
  os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
  sys.argv = ["swe_tf.train", *arguments]
  if kill_after_slots is not None:
    _die_in_the_untie(kill_after_slots)
  try:
    cli.main(["train", *arguments])
  finally:
    # What an interpreter does on exit; `multiprocessing` leaves it out.
    threading._shutdown()  # pylint: disable=protected-access
    atexit._run_exitfuncs()  # pylint: disable=protected-access


def _die_in_the_untie(slots_copied: int) -> None:
  from swe_tf.sharing import slots

  copy = slots.copy_slots

  def copy_some(optimizer, pairs) -> None:
    copy(optimizer, list(pairs)[:slots_copied])
    os.kill(os.getpid(), signal.SIGKILL)

  slots.copy_slots = copy_some


class Training:
  """A process that trains.

  Attributes:
    lines: What it has printed so far.
    seconds: How long it took; 0 while it runs.
  """

  def __init__(
    self, arguments: Sequence[str], kill_after_slots: int | None = None
  ):
    """Starts the process.

    Args:
      arguments: The flags of `swe train`.
      kill_after_slots: If given, the process kills itself while it unties,
        after copying the slots of this many variables.
    """
    self.lines: list[str] = []
    self.seconds = 0.0
    reader, writer = _CONTEXT.Pipe(duplex=False)
    self._start = time.monotonic()
    self._process = _CONTEXT.Process(
      target=_main, args=(list(arguments), writer, kill_after_slots)
    )
    self._process.start()
    writer.close()
    self._reading = threading.Thread(target=self._read, args=(reader,))
    self._reading.start()

  def _read(self, reader: connection.Connection) -> None:
    with os.fdopen(os.dup(reader.fileno()), errors="replace") as file:
      reader.close()
      for line in file:
        self.lines.append(line.rstrip("\n"))

  @property
  def age(self) -> float:
    return time.monotonic() - self._start

  def says(self, text: str) -> bool:
    return any(text in line for line in list(self.lines))

  def wait_until(self, is_time: Callable[["Training"], bool]) -> bool:
    """Waits for a moment; returns whether it came before the process ended."""
    while self._process.is_alive():
      if is_time(self):
        return True
      if self.age > _HUNG_SECONDS:
        return False
      time.sleep(_POLL_SECONDS)
    return False

  def send(self, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
      os.kill(self._process.pid, number)

  def limit_files(self, size: int) -> None:
    """Makes every write beyond `size` bytes of a file fail, as on a full disk.

    Otherwise nothing changes: the process runs, reads, and has open files.
    """
    with contextlib.suppress(ProcessLookupError):
      resource.prlimit(
        self._process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)
      )

  def end(self) -> int | None:
    """Waits for the end; returns the status, or None if it hung."""
    self._process.join(max(1.0, _HUNG_SECONDS - self.age))
    hung = self._process.exitcode is None
    if hung:
      self._process.kill()
      self._process.join()
    self._reading.join()
    self.seconds = self.age
    return None if hung else self._process.exitcode
