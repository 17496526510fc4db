"""A run of a study in a process of its own: `swe train`, watched by its log.

Imports no TensorFlow.
"""

from collections.abc import Sequence
import fcntl
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from swe_tf import errors

_LOG = "log.txt"
_LOCK = "run.lock"
_STEP = re.compile(rb"^train \|.*?step: +(\d+)", re.MULTILINE)
_TAIL = 20_000


def last_step(directory: pathlib.Path) -> int:
  """Returns the last step that the log of a run tells of."""
  path = directory / _LOG
  if not path.exists():
    return 0
  with open(path, "rb") as file:
    file.seek(max(0, path.stat().st_size - _TAIL))
    found = _STEP.findall(file.read())
  return int(found[-1]) if found else 0


def last_words(directory: pathlib.Path) -> str:
  """Returns the line of the log that most likely says why a run failed."""
  lines = (
    (directory / _LOG)
    .read_text(encoding="utf-8", errors="replace")
    .splitlines()
  )
  lines = [line.strip() for line in lines if line.strip()]
  of_error = [line for line in lines if line.startswith("error:")]
  return (of_error or lines or ["it left no log"])[-1]


class RunProcess:
  """A process that trains and evaluates one run.

  Attributes:
    directory: The run's directory.
    seconds: How long the process took, once it has ended.
    cpu_seconds: How long all cores together worked for it.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    experiment: str,
    config_file: pathlib.Path,
    cores: Sequence[int] = (),
  ):
    """Starts the run, or goes on with it where its checkpoint is.

    Args:
      directory: The run's directory, which is there.
      experiment: The name of the experiment.
      config_file: What changes it.
      cores: The processor's cores that it may use; all if empty.

    Raises:
      UsageError: If a process of another sweep is at this run.
    """
    self.directory = directory
    self.seconds = self.cpu_seconds = 0.0
    self._status: int | None = None
    self._start = time.time()
    # Held by the process itself, so that it outlives a sweep that is killed.
    lock = open(directory / _LOCK, "w")
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
      lock.close()
      raise errors.UsageError(
        f"{directory}: another process is at this run. Wait for it, or end "
        "it, and call the sweep again."
      ) from error

    def use_cores():
      if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)

    with lock, open(directory / _LOG, "ab") as log:
      self._process = subprocess.Popen(
        [
          sys.executable,
          "-m",
          "swe_tf.train",
          f"--experiment={experiment}",
          "--mode=train_and_eval",
          f"--model_dir={directory}",
          f"--config_file={config_file}",
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=[lock.fileno()],
        start_new_session=True,  # Ctrl-C is for the sweep.
        preexec_fn=use_cores,
        env={
          "TF_CPP_MIN_LOG_LEVEL": "2",
          "PYTHONUNBUFFERED": "1",
          **os.environ,
        },
      )

  def poll(self) -> int | None:
    """Returns the exit status, negative for a signal; None while it runs."""
    if self._status is None:
      pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
      if pid:
        self._status = os.waitstatus_to_exitcode(status)
        self._process.returncode = self._status
        self.seconds = time.time() - self._start
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
    return self._status

  def stop(self) -> None:
    """Ends the process; it goes on from its checkpoint when started again."""
    if self.poll() is None:
      self._process.send_signal(signal.SIGKILL)
      while self.poll() is None:
        time.sleep(0.05)
