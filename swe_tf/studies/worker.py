"""A run's directory, and the process that works on the run.

    params.yaml     the run's complete config
    run.json        its name, experiment and method, its value on each axis, and
                    the metrics to measure
    run.lock        held by the process that works on the run
    log.txt         all that this process printed
    progress.json   how far it is, and how long it has taken so far
    result.json     written last: a run that has it is finished

Beside them are Model Garden's files. Whoever sees the directory can show or
resume the run. Imports no TensorFlow: the function that trains does.
"""

from collections.abc import Mapping
import dataclasses
import math
import os
import pkgutil
import sys
import tempfile
import time
import traceback
from typing import Any

import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf import plugins
from swe_tf import sameness
from swe_tf.studies import progress as progress_lib

# A worker whose sweep was killed ends at once; a lock that is held longer
# belongs to somebody else.
LOCK_SECONDS = 15.0


class RunDirectory:
  """The directory of a run; may be a URL."""

  def __init__(self, path: files.PathLike):
    self.path = files.as_path(path)
    self.config_file = self.path / "params.yaml"
    self.log_file = self.path / "log.txt"

  def read_about(self) -> dict[str, Any]:
    return files.read_json(self.path / "run.json")

  def read_result(self) -> dict[str, Any] | None:
    path = self.path / "result.json"
    return files.read_json(path) if path.exists() else None

  def read_progress(self) -> dict[str, Any]:
    """Returns `progress.json`: at least step, steps and the time so far."""
    empty = {"step": 0, "steps": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    path = self.path / "progress.json"
    return empty | files.read_object(path, missing_ok=True)

  def begin(self, about: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Writes `params.yaml` and `run.json`, unless the run began before."""
    if not (self.path / "run.json").exists():
      text = yaml.safe_dump(dict(config), sort_keys=False)
      files.write_text(self.config_file, text)
      files.write_json(self.path / "run.json", about)


def refuse_other(
  path: files.PathLike, earlier: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
  """Raises `UsageError` if what is at `path` comes from another config."""
  for field, then, value in sameness.difference(earlier, now):
    raise errors.UsageError(
      f"{path}: the run here has {field} {then!r}, but now it is {value!r}; "
      "choose another output_dir."
    )


class Job(RunDirectory):
  """A run in the process that trains it: reports progress, writes the result.

  Its time counts from the moment that it is made.
  """

  def __init__(self, path: files.PathLike):
    super().__init__(path)
    self._earlier = self.read_progress()
    self._status = {name: self._earlier[name] for name in ("step", "steps")}
    self._start, self._saved = _clock(), 0.0
    # Where the output goes before it is uploaded; for a run at a URL.
    self._local_log: str | None = None

  def report(self, status: progress_lib.Status) -> None:
    """Notes how far the run is and what is going on."""
    self._status = dataclasses.asdict(status)
    if not math.isfinite(status.loss or 0.0):
      self._status["loss"] = None  # JSON has no NaN.
    # Writing to a store takes longer.
    interval = 20.0 if files.is_url(self.path) else 2.0
    if time.monotonic() > self._saved + interval:
      self.save()

  def save(self) -> None:
    """Writes `progress.json`, and the log of a run at a URL."""
    self._saved = time.monotonic()
    content = self._status | self._spent() | {"process": os.getpid()}
    files.write_json(self.path / "progress.json", content)
    if self._local_log:
      files.write_bytes(self.log_file, files.read_bytes(self._local_log))

  def finish(self, result: Mapping[str, Any]) -> dict[str, Any]:
    """Writes and returns `result.json`, with the time of all attempts."""
    content = dict(result) | self._spent()
    files.write_json(self.path / "result.json", content)
    return content

  def redirect_output(self, folder: str) -> None:
    """Appends everything that the process prints from now on to the log."""
    if files.is_url(self.path):
      self._local_log = os.path.join(folder, "log.txt")
      if self.log_file.exists():
        files.write_bytes(self._local_log, files.read_bytes(self.log_file))
    files.refuse_link(self.log_file)
    with open(self._local_log or self.log_file, "ab") as log:
      for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(log.fileno(), stream.fileno())
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]

  def _spent(self) -> dict[str, float]:
    return {
      name: round(self._earlier[name] + now - self._start[name], 1)
      for name, now in _clock().items()
    }


def _clock() -> dict[str, float]:
  # User and system time of this process and of the children it waited for.
  return {"seconds": time.monotonic(), "cpu_seconds": sum(os.times()[:4])}


def work(function: str, directory: str, arguments: Mapping[str, Any]) -> str:
  """Calls `module:function` with a run's `Job`, all output in its log.

  Returns why it failed, in one line; empty if it did not.
  """
  # Before TensorFlow is imported, which reads it.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  error = ""
  try:
    with (
      files.lock(directory, LOCK_SECONDS),
      tempfile.TemporaryDirectory() as folder,
    ):
      job = Job(directory)
      job.redirect_output(folder)
      job.save()  # Shows that it has started.
      try:
        plugins.load()
        pkgutil.resolve_name(function)(job, **arguments)
      except Exception as raised:  # A run may raise anything.
        traceback.print_exc()
        error = f"{type(raised).__name__}: {errors.first_line(raised)}"
        if isinstance(raised, errors.UsageError):
          error = " ".join(str(raised).split())  # Some have several lines.
      job.save()
  except errors.UsageError as locked:  # Nothing here is ours to write.
    return str(locked)
  except OSError as full:  # The log or the progress cannot be written.
    return f"cannot write to {directory}: {full.strerror}"
  return error
