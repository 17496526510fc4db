"""The process of a run: calls its function, keeps its log, time and progress.

`executors` start it, on this machine or on another. All that it tells is in the
run's directory, so whoever sees that directory can show or resume the run.
Imports no TensorFlow: the function does.
"""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import importlib
import math
import os
import sys
import tempfile
import time
import traceback
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import plugins
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import status as status_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Call:
  """What a process is to do.

  Attributes:
    function: `module:function`; it is called with a `Job` and the arguments.
    directory: The run's directory.
    arguments: The other arguments.
    num_gpus: How many GPUs it takes.
    uses_tpu: Whether it takes the TPU of a machine.
  """

  function: str
  directory: str
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  num_gpus: int = 0
  uses_tpu: bool = False


class Job:
  """What a run's function gets: a directory, and a way to report progress."""

  def __init__(self, path: files.PathLike):
    """Initializes the job; its time counts from now."""
    self.directory = directory_lib.RunDirectory(files.as_path(path))
    self._earlier = self.directory.read_progress()
    self._status: dict[str, Any] = {
      name: self._earlier[name] for name in ("step", "steps")
    }
    self._start, self._saved = _clock(), 0.0
    # Writing to a store takes longer.
    self._interval = 20.0 if files.is_url(self.path) else 2.0
    # Where the output goes before it is uploaded; for a run at a URL.
    self.local_log: str | None = None

  @property
  def path(self) -> str:
    """The path of the directory as a string, which Model Garden expects."""
    return str(self.directory.path)

  def report(self, status: status_lib.Status) -> None:
    """Notes how far the run is and what is going on."""
    self._status = dataclasses.asdict(status)
    if not math.isfinite(status.loss or 0.0):
      self._status["loss"] = None  # JSON has no NaN.
    if time.monotonic() > self._saved + self._interval:
      self.save()

  def save(self) -> None:
    """Writes `progress.json`, and the log of a run at a URL."""
    self._saved = time.monotonic()
    content = self._status | self._spent() | {"process": os.getpid()}
    files.write_json(self.directory.path / "progress.json", content)
    if self.local_log:
      log = files.read_bytes(self.local_log)
      files.write_bytes(self.directory.log_file, log)

  def finish(self, result: Mapping[str, Any]) -> dict[str, Any]:
    """Writes and returns `result.json`, with the time of all attempts."""
    content = dict(result) | self._spent()
    files.write_json(self.directory.path / "result.json", content)
    return content

  def _spent(self) -> dict[str, float]:
    return {
      name: round(self._earlier[name] + now - self._start[name], 1)
      for name, now in _clock().items()
    }


def _clock() -> dict[str, float]:
  # User and system time of this process and of the children it waited for.
  return {"seconds": time.monotonic(), "cpu_seconds": sum(os.times()[:4])}


def work(call: Call) -> str:
  """Does a call, with all output of this process in the run's log.

  Returns:
    Why it failed, in one line; empty if it did not.
  """
  # Before TensorFlow is imported, which reads it.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  directory = directory_lib.RunDirectory(files.as_path(call.directory))
  try:
    with directory.lock():
      job = Job(call.directory)
      with _log(job):
        error = _call(call, job)
        job.save()
  except errors.UsageError as locked:  # Nothing here is ours to write.
    return str(locked)
  return error


def _call(call: Call, job: Job) -> str:
  job.save()  # Shows that it has started.
  try:
    plugins.load()
    module, name = call.function.split(":")
    getattr(importlib.import_module(module), name)(job, **call.arguments)
    return ""
  except Exception as error:  # A run may raise anything.
    traceback.print_exc()
    if isinstance(error, errors.UsageError):
      return " ".join(str(error).split())  # Some have several lines.
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


@contextlib.contextmanager
def _log(job: Job) -> Iterator[None]:
  """Appends everything that the process prints to the log of a run."""
  path = job.directory.log_file
  with tempfile.TemporaryDirectory() as folder:
    if files.is_url(path):
      job.local_log = os.path.join(folder, "log.txt")
      if path.exists():
        files.write_bytes(job.local_log, files.read_bytes(path))
    with open(job.local_log or path, "ab") as log:
      for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(log.fileno(), stream.fileno())
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    yield
