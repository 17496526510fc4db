"""The jobs of `swe finetune` without TensorFlow: rates stand for what happens.

A learning rate of 2 fails, 3 dies, 4 diverges, 5 is bad input, 6 has no score;
others end with scores of 50 + seed.
"""

import os
import pathlib
import signal

from swe_tf import errors

# What a task is scored by.
SCORES = {
  "squad_v1.1": {"eval": ("f1", "exact_match")},
  "squad_v2.0": {"eval": ("best_f1", "best_exact")},
  "MNLI": {"dev_matched": ("accuracy",), "dev_mismatched": ("accuracy",)},
  "QQP": {"dev": ("f1", "accuracy")},
  "SST-2": {"dev": ("accuracy",)},
}


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
  score = None if rate == 6 else 50.0 + run["seed"]
  task = pathlib.Path(settings["data_dir"]).name
  result = {
    "status": "finished",
    "task": task,
    "scores": {
      split: dict.fromkeys(metrics, score)
      for split, metrics in SCORES.get(task, SCORES["SST-2"]).items()
    },
  }
  if rate == 4:
    result |= {"status": "diverged", "reason": "loss nan at step 1"}
  return job.finish(result)


def predict(job, settings, run, ax_data_dir):
  (job.directory.path / "predictions.tsv").write_text("index\tprediction\n")
  if ax_data_dir:
    return {"diagnostic": {"matthews_corrcoef": 20.0}}
  return {"test": {"accuracy": 12.5}}
