"""Directories of runs as `swe train` leaves them, without any training."""

import json
import pathlib

from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.scalar import summary_v2
from tensorboard.summary.writer import record_writer
import yaml

from swe_tf.analysis import comparisons
from swe_tf.analysis import runs as runs_lib

STEPS = 100


def write_events(directory: pathlib.Path, scalars) -> None:
  """Writes an event file with scalars given as {tag: [(step, value)]}."""
  directory.mkdir(parents=True, exist_ok=True)
  with open(directory / "events.out.tfevents.0", "wb") as file:
    writer = record_writer.RecordWriter(file)
    for tag, curve in scalars.items():
      for step, value in curve:
        event = event_pb2.Event(wall_time=float(step), step=step)
        event.summary.CopyFrom(summary_v2.scalar_pb(tag, value))
        writer.write(event.SerializeToString())


def config(
  *,
  seed=0,
  rate=1e-3,
  steps=STEPS,
  width=8,
  layers=24,
  data="d/t.txt",
  sharing=None,
  growth=None,
  **encoder,
):
  """Returns what a `params.yaml` holds, as far as a report reads it."""
  size = {
    "num_layers": layers,
    "hidden_size": width,
    "num_attention_heads": 1,
    "intermediate_size": 4 * width,
    "vocab_size": 100,
    **encoder,
  }
  task = {
    "model": {"encoder": {"type": "any", "any": size}},
    "train_data": {
      "seed": seed,
      "global_batch_size": 4,
      "seq_length": 16,
      "max_predictions_per_seq": 2,
      "input_path": data,
    },
    "seed": seed,
    "sharing": {"mode": "none"} if sharing is None else sharing,
  }
  if growth:
    task["growth"] = {"method": growth}
  schedule = {
    "type": "polynomial",
    "polynomial": {"initial_learning_rate": rate},
  }
  optimizer = {"learning_rate": schedule}
  trainer = {"train_steps": steps, "optimizer_config": optimizer}
  return {"task": task, "trainer": trainer}


def swe(fraction=0.1, unit_size=1, **fields):
  own = {"unit_size": unit_size, "untie_fraction": fraction}
  return {"mode": "swe", **own, **fields}


def write_run(
  directory: pathlib.Path,
  content,
  loss,
  accuracy=0.5,
  *,
  end: int | None = None,
  curve=None,
  seconds=None,
  tau=None,
  axes=None,
):
  """Writes a run; `end` is its last step, `tau` the one that was measured."""
  end = end or content["trainer"]["train_steps"]
  directory.mkdir(parents=True)
  # The tuple has a tag that a safe loader refuses.
  text = yaml.dump(content | {"runtime": {"shape": (1, 2)}})
  assert "python/tuple" in text
  (directory / "params.yaml").write_text(text)
  train = {"training_loss": [(1, 9.0), (end, loss + 0.1)]}
  if tau is not None:
    train["sharing/untie_step"] = [(end, tau)]
  write_events(directory / "train", train)
  validation = {"validation_loss": [*(curve or ()), (end, loss)]}
  validation["masked_lm_accuracy"] = [(end, accuracy)]
  write_events(directory / "validation", validation)
  if seconds is not None:
    result = {"status": "finished", "seconds": seconds, "metrics": {}}
    (directory / "result.json").write_text(json.dumps(result))
  if axes is not None:
    (directory / "run.json").write_text(json.dumps({"axes": axes}))


def write_seeds(root: pathlib.Path, name: str, losses, **fields):
  """Writes a run for each seed 0, 1, ... of an arm, with its final loss."""
  for seed, loss in enumerate(losses):
    write_run(root / f"{name}{seed}", config(seed=seed, **fields), loss)


def read(*roots):
  """Returns the runs, arranged, and their curves."""
  found, curves = runs_lib.read(roots)
  return comparisons.arrange(found), curves


def summarize(*roots):
  """Returns the arms by title."""
  return comparisons.summarize(read(*roots)[0]).set_index("arm", drop=False)
