"""The sweep's end of a worker: starts it, gives it jobs, survives its death."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.studies import worker as worker_lib

Message = dict[str, Any]


class JobFailed(errors.Failed):
  """A job failed for a reason of its own."""


class Worker:
  """Runs jobs in another process, which is restarted after a crash.

  `start` and `receive` are for many workers at a time, with `select` to wait
  for them; `run` runs one job.
  """

  def __init__(self, *, stays: bool = False, cores: Sequence[int] = ()):
    """Initializes the worker; the process starts with the first job.

    Args:
      stays: Whether one process runs all jobs, which saves the quarter of a
        minute that TensorFlow takes to start. Otherwise each job has its own
        process, with its own memory and processor time.
      cores: The processor cores that it may use; all if empty.
    """
    self._stays = stays
    self._cores = list(cores)
    self._process: subprocess.Popen[bytes] | None = None
    self._messages = -1
    self._rest = b""

  def fileno(self) -> int:
    """Returns the descriptor that is readable when there is a message."""
    return self._messages

  def start(
    self,
    function: str,
    arguments: Mapping[str, Any],
    directory: files.PathLike | None = None,
  ) -> None:
    """Starts a job; see `worker` for the arguments."""
    process = self._process = self._process or self._launch()
    job = {
      "function": function,
      "arguments": arguments,
      "directory": None if directory is None else os.fspath(directory),
      "cores": self._cores,
    }
    assert process.stdin is not None
    # If it is already dead, `receive` finds out how it ended.
    with contextlib.suppress(BrokenPipeError):
      process.stdin.write(json.dumps(job).encode() + b"\n")
      process.stdin.flush()

  def receive(self) -> list[Message]:
    """Waits for messages; all but a job's last one are `progress`."""
    data = os.read(self._messages, 1 << 16)
    if not data:
      code = self.stop()
      how = signal.Signals(-code).name if code < 0 else f"status {code}"
      return [{"event": "failed", "text": f"the process ended with {how}"}]
    *lines, self._rest = (self._rest + data).split(b"\n")
    messages = [json.loads(line) for line in lines]
    if messages and messages[-1]["event"] != "progress" and not self._stays:
      self.stop()
    return messages

  def run(
    self,
    function: str,
    arguments: Mapping[str, Any],
    directory: files.PathLike | None = None,
  ) -> Any:
    """Runs a job and returns what its function returns.

    Raises:
      UsageError: If the input is wrong.
      JobFailed: If the job failed, or its process crashed.
    """
    self.start(function, arguments, directory)
    while True:
      for message in self.receive():
        if message["event"] != "progress":
          return value_of(message)

  def stop(self) -> int:
    """Ends the process; the run it was working on can be resumed.

    Returns:
      Its exit status, negative for a signal.
    """
    process, self._process = self._process, None
    if process is None:
      return 0
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
      process.stdin.close()
    try:
      process.wait(timeout=10)
    except subprocess.TimeoutExpired:
      process.kill()
    os.close(self._messages)
    self._messages, self._rest = -1, b""
    return process.wait()

  def _launch(self) -> subprocess.Popen[bytes]:
    self._messages, write_end = os.pipe()
    process = subprocess.Popen(
      [sys.executable, "-m", "swe_tf.studies.worker", str(write_end)],
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
      pass_fds=[write_end],
      # Ctrl-C is for the sweep, which then closes the pipe.
      start_new_session=True,
      env={"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1", **os.environ},
    )
    os.close(write_end)
    return process


class WorkerHere(Worker):
  """Runs jobs in this process, one at a time: `start` waits for the end.

  For paths that no other process sees, such as ram://. A job that crashes ends
  the sweep.
  """

  def __init__(self) -> None:
    super().__init__(stays=True)
    self._received: list[Message] = []

  def start(
    self,
    function: str,
    arguments: Mapping[str, Any],
    directory: files.PathLike | None = None,
  ) -> None:
    """Runs a job to its end."""
    job = {
      "function": function,
      "arguments": arguments,
      "directory": None if directory is None else os.fspath(directory),
      "is_alone": False,
    }

    def send(**message: Any) -> None:
      # As it would come from another process: without tuples.
      self._received.append(json.loads(json.dumps(message)))

    worker_lib.perform(send, job)
    # So that `select` finds it readable.
    self._messages = os.open(os.devnull, os.O_RDONLY)

  def receive(self) -> list[Message]:
    """Returns the messages of the job that has ended."""
    os.close(self._messages)
    messages, self._received = self._received, []
    return messages


def value_of(message: Message) -> Any:
  """Returns the value in a job's last message, or raises its error."""
  if message["event"] == "done":
    return message["value"]
  kind = errors.UsageError if message["event"] == "usage_error" else JobFailed
  raise kind(message["text"])


@contextlib.contextmanager
def workers(
  count: int = 1, *, stays: bool = False, uses: Any = ()
) -> Iterator[list[Worker]]:
  """Yields workers that divide the cores, and ends them after the block.

  Args:
    count: The number of workers.
    stays: See `Worker`.
    uses: The paths of their jobs, or anything that shows them when printed. If
      one is in the memory of this process, the only worker is this process.

  Raises:
    UsageError: If more than one worker would have to be this process.
  """
  made: list[Worker]
  if files.uses_private_memory(uses):
    if count > 1:
      raise errors.UsageError(
        f"--jobs={count}: ram:// is the memory of one process; use --jobs=1, "
        "or paths that other processes see."
      )
    made = [WorkerHere()]
  else:
    made = [Worker(stays=stays, cores=_share(i, count)) for i in range(count)]
  try:
    yield made
  finally:
    for worker in made:
      worker.stop()


def _share(index: int, count: int) -> list[int]:
  """Returns one of `count` equal parts of the cores; empty stands for all."""
  if count == 1 or not hasattr(os, "sched_getaffinity"):
    return []
  cores = sorted(os.sched_getaffinity(0))
  each = max(1, len(cores) // count)
  first = index * each % len(cores)
  return cores[first : first + each]
