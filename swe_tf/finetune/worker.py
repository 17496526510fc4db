"""The process that does the runs of a sweep, one after the other.

    python -m swe_tf.finetune.worker FD

Jobs come as JSON lines on stdin, messages go as JSON lines to the file
descriptor FD, and all that TensorFlow prints goes to the log of the run. A
process of its own keeps a crash away from the sweep; one process for many runs
saves the quarter of a minute that TensorFlow takes to start.

Every job ends with one message that has `event` `done`, `usage_error` or
`failed`; before it there may be some with `progress`.
"""

import contextlib
import fcntl
import json
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any

from swe_tf import errors
from swe_tf.finetune import plan

# A worker whose sweep was killed ends at once; a lock held longer is somebody
# else's.
_LOCK_SECONDS = 20


def _jobs_until_stdin_closes() -> "queue.Queue[dict[str, Any]]":
  """Returns a queue of jobs; the process ends when the sweep is gone."""
  jobs = queue.Queue()

  def read():
    for line in sys.stdin:
      jobs.put(json.loads(line))
    # Nobody is there to hear of the rest, and the next sweep may want to go on
    # with this very run. Checkpoints are complete or absent at any time.
    os._exit(0)

  threading.Thread(target=read, daemon=True).start()
  return jobs


@contextlib.contextmanager
def _log_of(directory: str):
  """Sends all output to the log of a run, locked against a second worker."""
  os.makedirs(directory, exist_ok=True)
  with open(os.path.join(directory, "log.txt"), "a", encoding="utf-8") as log:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
      try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
      except BlockingIOError:
        if time.monotonic() > deadline:
          raise RuntimeError(
            f"another process is working in {directory}"
          ) from None
        time.sleep(0.2)
    for stream in (1, 2):
      os.dup2(log.fileno(), stream)
    try:
      yield
    except Exception:
      traceback.print_exc()
      raise
    finally:
      # The copies keep the file open, and with it the lock.
      fcntl.flock(log, fcntl.LOCK_UN)


def _do(job: dict[str, Any], send) -> Any:
  """Does one job and returns what it returns."""
  # TensorFlow takes seconds to import.
  from swe_tf.finetune import run as run_lib  # pylint: disable=g-import-not-at-top

  settings = plan.Settings(**job["settings"])
  run = plan.Run(**job["run"])
  if job["kind"] == "check":
    return run_lib.check(settings, run)

  def report(step, steps, text):
    send(event="progress", step=step, steps=steps, text=text)

  with _log_of(job["directory"]):
    if job["kind"] == "train":
      return run_lib.train(settings, run, job["directory"], report)
    return run_lib.predict(
      settings, run, job["directory"], job["ax_data_dir"], report
    )


def main() -> None:
  """Does jobs until there are no more."""
  messages = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")

  def send(**message):
    messages.write(json.dumps(message) + "\n")
    messages.flush()

  jobs = _jobs_until_stdin_closes()
  while True:
    job = jobs.get()
    try:
      send(event="done", value=_do(job, send))
    except errors.UsageError as error:
      # Some list what differs on lines of their own.
      send(event="usage_error", text=" ".join(str(error).split()))
    except Exception as error:  # Whatever a run raises is its own affair.
      lines = str(error).splitlines() or [""]
      send(event="failed", text=f"{type(error).__name__}: {lines[0]}")


if __name__ == "__main__":
  main()
