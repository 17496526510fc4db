"""A worker without TensorFlow: the learning rate says what becomes of a run.

1  finishes with a score of 50 + seed
2  fails
3  takes the process with it
4  diverges
5  finds the input at fault
6  finishes without a score
"""

import json
import os
import pathlib
import signal
import sys


def main():
  messages = os.fdopen(int(sys.argv[1]), "w")

  def send(**message):
    messages.write(json.dumps(message) + "\n")
    messages.flush()

  for line in sys.stdin:
    job = json.loads(line)
    rate, seed = job["run"]["learning_rate"], job["run"]["seed"]
    if job["kind"] == "check":
      if rate == 5:
        send(event="usage_error", text="the input is bad")
      else:
        send(event="done", value="/somewhere/ckpt-7")
      continue
    directory = pathlib.Path(job["directory"])
    directory.mkdir(parents=True, exist_ok=True)
    if job["kind"] == "predict":
      (directory / "predictions.tsv").write_text("index\tprediction\n")
      send(event="done", value={"test": {"accuracy": 12.5}})
      continue
    with open(directory / "calls.txt", "a") as file:
      file.write(job["settings"]["checkpoint"] + "\n")
    send(event="progress", step=1, steps=2, text="loss 1")
    if rate == 2:
      send(event="failed", text="ValueError: no luck")
      continue
    if rate == 3:
      os.kill(os.getpid(), signal.SIGKILL)
    accuracy = None if rate == 6 else 50.0 + seed
    result = {
      "status": "finished",
      "task": "SST-2",
      "seconds": 1.0,
      "scores": {"dev": {"accuracy": accuracy}},
    }
    if rate == 4:
      result |= {
        "status": "diverged",
        "reason": "loss nan at step 1",
        "scores": {},
      }
    (directory / "result.json").write_text(json.dumps(result))
    send(event="done", value=result)


if __name__ == "__main__":
  main()
