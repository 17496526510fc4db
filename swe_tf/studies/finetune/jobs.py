"""The functions of a fine-tuning run: it trains, and the best one predicts.

Besides what every run has, its directory gets predictions for the dev set. A
run that is started again resumes from its checkpoint.
"""

from typing import Any

from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import prepared_data
from swe_tf.studies import jobs
from swe_tf.studies import status
from swe_tf.studies import worker
from swe_tf.studies.finetune import predictions
from swe_tf.training import recovery


def train(job: worker.Job) -> dict[str, Any]:
  """Trains, evaluates on the dev set, and returns the new `result.json`."""
  config = jobs.read_config(job)
  data = prepared_data.read_prepared_data(config.task.data_dir)
  steps = config.trainer.train_steps
  result = {
    "status": "finished",
    "task": data.task,
    "train_steps": steps,
    "scores": {},
  }
  try:
    runner = jobs.make_runner(job, config, mode="train")
    with runner.strategy.scope():
      runner.controller.train(steps)
      job.report(status.Status(step=steps, steps=steps, text="evaluating"))
      result["scores"] = _evaluate(runner.trainer, data, job.directory.path)
  except predictions.Diverged as error:
    result |= {"status": "diverged", "reason": str(error)}
  except recovery.Diverged as error:
    result |= {"status": "diverged", "reason": error.problem}
  return job.finish(result)


def _evaluate(trainer, data, directory: files.Path):
  """Returns the scores by split, starting with the split that selects."""
  task, model = trainer.task, trainer.model
  if data.is_squad:
    return {"eval": predictions.evaluate_squad(task, model, directory)}
  definition = glue_tasks.find_task(data.task)
  first = task.task_config.eval_split
  splits = sorted(data.splits_of("dev"), key=lambda split: split.name != first)
  return {
    split.name: predictions.evaluate_glue(
      task, model, split, definition, directory / f"{split.name}.tsv"
    )
    for split in splits
  }


def predict(job: worker.Job, ax_data_dir: str) -> dict[str, Any]:
  """Predicts the test sets of a finished GLUE run, for `swe submission`.

  Writes `test_result.json`, with the scores of the test sets that have labels.

  Args:
    job: The job, in the directory of the run with its checkpoint.
    ax_data_dir: What `swe prepare glue --task=AX` wrote, for MNLI; may be
      empty.
  """
  config = jobs.read_config(job)
  runner = jobs.make_runner(job, config, mode="train")
  data = prepared_data.read_prepared_data(config.task.data_dir)
  splits = [(data, split) for split in data.splits_of("test")]
  if ax_data_dir:
    ax_data = prepared_data.read_prepared_data(ax_data_dir)
    splits += [
      (ax_data, split) for split in ax_data.splits_of("test", "diagnostic")
    ]
  scores = {}
  with runner.strategy.scope():
    for holder, split in splits:
      found = predictions.evaluate_glue(
        runner.trainer.task,
        runner.trainer.model,
        split,
        glue_tasks.find_task(holder.task),
        job.directory.path / predictions.prediction_file(holder, split),
      )
      if found:
        scores[split.name] = found
  content = {"ax_data_dir": ax_data_dir, "scores": scores}
  files.write_json(job.directory.path / "test_result.json", content)
  return content
