"""Runs without TensorFlow: they count steps, save them, end in many ways."""

import os
import signal
import time

from swe_tf import errors
from swe_tf.studies import progress


def train(job, steps=3, sleep=0.0, end=""):
  """Counts from its checkpoint on; `end` is how it fails at the end."""
  calls = job.path / "calls.txt"
  earlier = calls.read_text() if calls.exists() else ""
  cores = sorted(os.sched_getaffinity(0))
  calls.write_text(f"{earlier}{os.getpid()} {cores}\n")
  checkpoint = job.path / "checkpoint"
  step = int(checkpoint.read_text()) if checkpoint.exists() else 0
  print(f"starting at step {step}")
  for now in range(step + 1, steps + 1):
    time.sleep(sleep)
    checkpoint.write_text(str(now))
    job.report(progress.Status(step=now, steps=steps, loss=1 / now))
  if end == "raise":
    raise ValueError("no luck\nat all")
  if end == "usage error":
    raise errors.UsageError("the input\nis bad")
  if end:
    os.kill(os.getpid(), getattr(signal, end))
  return job.finish({"loss": 1 / steps})
