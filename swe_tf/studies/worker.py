"""The process that runs jobs, one after another.

    python -m swe_tf.studies.worker FD

A job is a JSON line on stdin:

    {"function": "module:function", "arguments": {...}, "directory": DIR,
     "cores": [0, 1]}

The function is called with a `Job` and the arguments. Unless `directory` is
null, the process holds its lock, and all output goes to its log. Without cores
it may use all of them. Messages go as JSON lines to the file descriptor FD:
`event` is `progress` (with the fields of `status.Status`) any number of times,
then once `done` (`value`), `usage_error` or `failed` (`text`).

A separate process keeps a crash away from the sweep. `launcher` starts it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import importlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import plugins
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import logs
from swe_tf.studies import status as status_lib

# The time between saves, which is lost if the process is killed; writing to a
# store takes longer.
_SAVE_SECONDS, _SAVE_SECONDS_URL = 2.0, 20.0


class Job:
  """What a job's function gets: a directory, and a way to report progress."""

  def __init__(
    self,
    directory: directory_lib.RunDirectory | None = None,
    send: Callable[..., Any] = lambda **message: None,
  ):
    """Initializes the job; its time counts from now.

    Args:
      directory: The run's directory; None for a job that has none.
      send: Called with the fields of every message.
    """
    self.directory = directory
    self._send = send
    self._progress = directory.read_progress() if directory else {}
    self._start = _clock()

  @property
  def path(self) -> str:
    """The path of the directory as a string, which Model Garden expects."""
    assert self.directory is not None
    return str(self.directory.path)

  def report(self, status: status_lib.Status) -> None:
    """Reports how far the run is and what is going on."""
    self._progress |= {"step": status.step, "steps": status.steps}
    self._send(event="progress", **dataclasses.asdict(status))

  def save(self) -> None:
    """Writes `progress.json`."""
    if self.directory:
      self.directory.write_progress(self._progress | self._spent())

  def finish(self, result: Mapping[str, Any]) -> dict[str, Any]:
    """Writes and returns `result.json`, with the time of all attempts."""
    assert self.directory is not None
    self.save()
    content = dict(result) | self._spent()
    self.directory.write_result(content)
    return content

  def _spent(self) -> dict[str, float]:
    now = _clock()
    return {
      name: round(self._progress[name] + now[name] - start, 1)
      for name, start in self._start.items()
    }


def _clock() -> dict[str, float]:
  # User and system time of this process and of the children it waited for.
  return {"seconds": time.monotonic(), "cpu_seconds": sum(os.times()[:4])}


def _jobs_until_stdin_closes() -> "queue.Queue[dict[str, Any]]":
  """Returns a queue of jobs; the process ends when the launcher is gone."""
  jobs: queue.Queue[dict[str, Any]] = queue.Queue()

  def read():
    for line in sys.stdin:
      jobs.put(json.loads(line))
    # Nobody is left to report to, and the next sweep may want to resume this
    # very run. Checkpoints are complete or absent at any time.
    os._exit(0)

  threading.Thread(target=read, daemon=True).start()
  return jobs


@contextlib.contextmanager
def _at_work(job: Job, is_alone: bool) -> Iterator[None]:
  """Holds the lock, keeps the log, and saves the progress.

  Args:
    job: The job.
    is_alone: Whether all output of the process belongs to the job.
  """
  if job.directory is None:
    yield
    return
  ended = threading.Event()
  log_file = job.directory.log_file
  is_url = files.is_url(log_file)

  def save():
    while not ended.wait(_SAVE_SECONDS_URL if is_url else _SAVE_SECONDS):
      job.save()
      save_log()

  saver = threading.Thread(target=save, daemon=True)
  nowhere = contextlib.nullcontext(lambda: None)
  with (
    job.directory.lock(),
    logs.capture(log_file) if is_alone else nowhere as save_log,
  ):
    saver.start()
    try:
      yield
    except Exception:
      if is_alone:
        traceback.print_exc()
      else:
        logs.append(log_file, traceback.format_exc())
      raise
    finally:
      ended.set()
      saver.join()
      job.save()


def _do(
  send: Callable[..., Any],
  function: str,
  arguments: Mapping[str, Any],
  directory: str | None,
  cores: Sequence[int] = (),
  is_alone: bool = True,
) -> Any:
  """Runs a job and returns what its function returns."""
  if cores:  # Before TensorFlow counts them.
    os.sched_setaffinity(0, cores)
  job = Job(directory_lib.RunDirectory(directory) if directory else None, send)
  with _at_work(job, is_alone):
    plugins.load()
    module, name = function.split(":")
    return getattr(importlib.import_module(module), name)(job, **arguments)


def perform(send: Callable[..., Any], job: Mapping[str, Any]) -> None:
  """Runs a job and sends its last message."""
  try:
    send(event="done", value=_do(send, **job))
  except errors.UsageError as error:
    # Some list differences on separate lines.
    send(event="usage_error", text=" ".join(str(error).split()))
  except Exception as error:  # A job may raise anything.
    lines = str(error).splitlines() or [""]
    send(event="failed", text=f"{type(error).__name__}: {lines[0]}")


def main() -> None:
  """Runs jobs until there are no more."""
  messages = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")

  def send(**message):
    messages.write(json.dumps(message) + "\n")
    messages.flush()

  jobs = _jobs_until_stdin_closes()
  while True:
    perform(send, jobs.get())


if __name__ == "__main__":
  main()
