"""The sweep's end of a worker: starts it, gives it jobs, survives its death."""

from collections.abc import Callable
import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

from swe_tf import errors


class JobFailed(Exception):
  """A job that could not be done, for a reason of its own."""


class WorkerProcess:
  """Runs jobs in another process, which is started again after a crash."""

  def __init__(self, module: str = "swe_tf.finetune.worker"):
    """Initializes the handle; the process starts with the first job.

    Args:
      module: What to run; tests have one without TensorFlow.
    """
    self._module = module
    self._process: subprocess.Popen | None = None
    self._messages = None

  def __enter__(self):
    return self

  def __exit__(self, *unused_exception):
    self._stop()

  def run(
    self, job: dict[str, Any], on_progress: Callable[[dict[str, Any]], Any]
  ) -> Any:
    """Does a job.

    Args:
      job: See `worker`.
      on_progress: Is called with every `progress` message.

    Returns:
      What the job returned.

    Raises:
      UsageError: If the input is at fault: every job would fail alike.
      JobFailed: If this job failed, or took the process with it.
    """
    if self._process is None:
      self._start()
    try:
      self._process.stdin.write(json.dumps(job) + "\n")
      self._process.stdin.flush()
    except BrokenPipeError:
      pass  # The loop below finds out how it ended.
    for line in self._messages:
      message = json.loads(line)
      if message["event"] == "progress":
        on_progress(message)
      elif message["event"] == "done":
        return message["value"]
      elif message["event"] == "usage_error":
        raise errors.UsageError(message["text"])
      else:
        raise JobFailed(message["text"])
    code = self._process.wait()
    self._stop()
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    raise JobFailed(f"the process ended with {how}")

  def _start(self):
    read_end, write_end = os.pipe()
    self._process = subprocess.Popen(
      [sys.executable, "-m", self._module, str(write_end)],
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
      pass_fds=[write_end],
      # Ctrl-C is for the sweep, which then closes the pipe.
      start_new_session=True,
      env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
      text=True,
    )
    os.close(write_end)
    self._messages = os.fdopen(read_end, encoding="utf-8")

  def _stop(self):
    if self._process is None:
      return
    with contextlib.suppress(BrokenPipeError):
      self._process.stdin.close()
    try:
      self._process.wait(timeout=10)
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()
    self._messages.close()
    self._process = None
