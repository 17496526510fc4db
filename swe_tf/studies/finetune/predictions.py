"""Predicts splits with a fine-tuned model; scores and writes predictions."""

import math
from typing import Any

import numpy as np
import orbit
import tensorflow as tf

from official.nlp.tasks import utils
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.scoring import glue
from swe_tf.training import recovery

Scores = dict[str, float | None]


def evaluate_glue(
  task,
  model,
  split: manifest.Split,
  definition: glue_tasks.GlueTask,
  path: files.Path,
) -> Scores | None:
  """Predicts a split, writes a prediction file, and scores it if possible.

  `definition` is the task of the split, which for AX is not the model's.

  Returns:
    The official scores in percent, with None for an undefined one; None if the
    split has no labels.
  """
  params = task.task_config.validation_data.replace(
    input_path=split.path, include_example_id=True
  )

  def step(inputs):
    return (
      inputs.pop("example_id"),
      inputs.pop(task.label_field),
      inputs.pop(task.real_field),
      task.inference_step(inputs, model),
    )

  def collect(state, outputs):
    replicas = ([each.numpy() for each in found] for found in outputs)
    return [*(state or ()), *zip(*replicas)]

  # Positions in the GLUE file, labels in the records, logits.
  rows, labels, is_real, outputs = (
    np.concatenate(parts) for parts in zip(*_run(task, step, params, collect))
  )
  rows, labels, outputs = (x[is_real > 0] for x in (rows, labels, outputs))
  if not np.all(np.isfinite(outputs)):
    raise recovery.Diverged(f"outputs on {split.name} that are not numbers")
  is_regression = task.task_config.model.num_classes == 1
  values = outputs[:, 0] if is_regression else np.argmax(outputs, axis=-1)
  predictions = dict(zip(rows.tolist(), values.tolist()))
  files.write_text(path, glue.format_predictions(predictions, definition))
  if not split.labelled:
    return None
  scores = glue.evaluate(definition, labels, values)
  return {
    name: None if math.isnan(value) else value for name, value in scores.items()
  }


def evaluate_squad(task, model, directory: files.Path) -> Scores:
  """Answers the evaluation split, and writes and scores the answers in percent.

  For v2.0 the threshold of `best_f1` is applied to `predictions.json`, so its
  F1 is `best_f1`; `answers.json` and `null_odds.json` are from before that.
  """
  results = _run(
    task,
    lambda inputs: task.validation_step(inputs, model),
    task.task_config.validation_data,
    task.aggregate_logs,
  )
  if not all(np.all(np.isfinite(result.start_logits)) for result in results):
    raise recovery.Diverged("logits that are not numbers")
  answers = task.answers(results)
  scores = task.score(answers)
  threshold = scores.get("best_f1_thresh", 0.0)
  written = {"predictions": answers.decide(threshold)}
  if answers.null_odds:
    written |= {"answers": answers.texts, "null_odds": answers.null_odds}
  for name, content in written.items():
    files.write_json(directory / f"{name}.json", dict(content))
  return {
    name: value for name, value in scores.items() if isinstance(value, float)
  }


def prediction_file(task: str, split: str) -> str:
  """Returns the name under which `swe submission` looks for predictions."""
  if task == "AX":
    return "AX.tsv"
  names = {"test_matched": "MNLI-m", "test_mismatched": "MNLI-mm"}
  names["test"] = "predictions"
  return f"{names.get(split, split)}.tsv"


def _run(task, step, params, aggregate: Any):
  """Runs a step over a data set with Model Garden's loop."""
  dataset = orbit.utils.make_distributed_dataset(
    tf.distribute.get_strategy(), task.build_inputs, params
  )
  return utils.predict(step, aggregate, dataset)
