"""The jobs of `swe finetune` without TensorFlow: rates stand for what happens.

A learning rate of 2 fails, 3 dies, 4 diverges, 5 is bad input, 6 has no score;
others end with the accuracy 50 + seed.
"""

import os
import signal

from swe_tf import errors


def check(job, settings, run):
  if run["learning_rate"] == 5:
    raise errors.UsageError("the input is bad")
  return "/somewhere/ckpt-7"


def train(job, settings, run):
  """Notes the call and ends as the learning rate says."""
  with open(job.directory.path / "calls.txt", "a") as file:
    file.write(settings["checkpoint"] + "\n")
  rate = run["learning_rate"]
  if rate == 2:
    raise ValueError("no luck")
  if rate == 3:
    os.kill(os.getpid(), signal.SIGKILL)
  accuracy = None if rate == 6 else 50.0 + run["seed"]
  result = {
    "status": "finished",
    "task": "SST-2",
    "scores": {"dev": {"accuracy": accuracy}},
  }
  if rate == 4:
    result |= {"status": "diverged", "reason": "loss nan at step 1"}
  return job.finish(result)


def predict(job, settings, run, ax_data_dir):
  (job.directory.path / "predictions.tsv").write_text("index\tprediction\n")
  return {"test": {"accuracy": 12.5}}
