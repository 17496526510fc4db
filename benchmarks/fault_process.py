"""Training processes that are cheap to start and can be harmed.

A server imports TensorFlow once, without running anything in it, and forks a
process for each call of `swe train`. Such a process goes through the command's
own `main`, receives real signals and ends with a real status.
"""

import atexit
from collections.abc import Callable, Sequence
import contextlib
import json
import multiprocessing
from multiprocessing import connection
import os
import resource
import signal
import socket
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
_LEFT_ALONE_SECONDS = 5  # For a worker whose chief has failed.


def start_server() -> None:
  """Makes the server import what a process will need."""
  _CONTEXT.set_forkserver_preload(list(_IMPORTED))


def _main(
  arguments: Sequence[str],
  output: connection.Connection,
  kill_after_slots: int | None,
  cluster: str,
) -> None:
  """Runs `swe train`, as `python -m swe_tf.train` does."""
  from swe_tf import cli

  for stream in (sys.stdout, sys.stderr):
    os.dup2(output.fileno(), stream.fileno())
  os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_CONFIG": cluster}
  sys.argv = ["swe_tf.train", *arguments]
  if kill_after_slots is not None:
    _die_in_the_untie(kill_after_slots)
  try:
    cli.main(["train", "--verbose", *arguments])
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


def clusters(count: int) -> list[str]:
  """Returns `TF_CONFIG` for each of several workers; empty for one alone."""
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
    for one in sockets:
      one.bind(("localhost", 0))
    hosts = [f"localhost:{one.getsockname()[1]}" for one in sockets]
  task = {"type": "worker"}
  return (
    [
      json.dumps(
        {"cluster": {"worker": hosts}, "task": task | {"index": index}}
      )
      for index in range(count)
    ]
    if count > 1
    else [""]
  )


class Training:
  """A process that trains, or one for each worker of a cluster.

  Attributes:
    lines: What it has printed so far; of several workers, the first.
    seconds: How long it took; 0 while it runs.
  """

  def __init__(
    self,
    arguments: Sequence[str],
    kill_after_slots: int | None = None,
    workers: int = 1,
  ):
    """Starts the process.

    Args:
      arguments: The flags of `swe train`.
      kill_after_slots: If given, the process kills itself while it unties,
        after copying the slots of this many variables.
      workers: How many processes train together.
    """
    self.seconds = 0.0
    self._start = time.monotonic()
    self._processes, self._reading = [], []
    for cluster in clusters(workers):
      lines: list[str] = []
      reader, writer = _CONTEXT.Pipe(duplex=False)
      process = _CONTEXT.Process(
        target=_main, args=(list(arguments), writer, kill_after_slots, cluster)
      )
      process.start()
      writer.close()
      reading = threading.Thread(target=_read, args=(reader, lines))
      reading.start()
      if not self._processes:
        self.lines = lines
      self._processes.append(process)
      self._reading.append(reading)

  @property
  def age(self) -> float:
    return time.monotonic() - self._start

  def says(self, text: str) -> bool:
    return any(text in line for line in list(self.lines))

  def wait_until(self, is_time: Callable[["Training"], bool]) -> bool:
    """Waits for a moment; returns whether it came before the process ended."""
    while self._processes[0].is_alive():
      if is_time(self):
        return True
      if self.age > _HUNG_SECONDS:
        return False
      time.sleep(_POLL_SECONDS)
    return False

  def send(self, number: int) -> None:
    """Sends a signal; to several workers, to the last of them first."""
    for process in reversed(self._processes):
      with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)

  def limit_files(self, size: int) -> None:
    """Makes every write beyond `size` bytes of a file fail, as on a full disk.

    Otherwise nothing changes: the process runs, reads, and has open files.
    """
    limits = (size, resource.RLIM_INFINITY)
    for process in self._processes:
      with contextlib.suppress(ProcessLookupError):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)

  def end(self) -> int | None:
    """Waits for the end; returns the status, or None if it hung.

    Workers must succeed together; what is left of a failed cluster is ended.
    """
    statuses: list[int | None] = []
    for process in self._processes:
      failed = any(statuses)
      rest = _HUNG_SECONDS - self.age
      process.join(_LEFT_ALONE_SECONDS if failed else max(1.0, rest))
      statuses.append(process.exitcode)
      process.kill()
      process.join()
    for reading in self._reading:
      reading.join()
    self.seconds = self.age
    return next((status for status in statuses if status != 0), 0)


def _read(reader: connection.Connection, lines: list[str]) -> None:
  with os.fdopen(os.dup(reader.fileno()), errors="replace") as file:
    reader.close()
    for line in file:
      lines.append(line.rstrip("\n"))
