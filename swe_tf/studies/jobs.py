"""The functions of runs: each trains and evaluates a run, or resumes it.

`train` is for pre-training, `finetune` and `predict` for fine-tuning. They
differ in what is measured at the end.
"""

from typing import Any

from official.core import config_definitions as cfg
from official.core import train_lib
from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.analysis import scalars
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.studies import experiments
from swe_tf.studies import progress
from swe_tf.studies import worker
from swe_tf.studies.finetune import predictions
from swe_tf.training import recovery
from swe_tf.training import runner as runner_lib


def read_config(job: worker.Job) -> cfg.ExperimentConfig:
  """Returns the experiment in the job's directory, locked."""
  experiment = job.read_about()["experiment"]
  config = experiments.get(experiment, yaml_files.read(job.config_file))
  config.lock()
  return config


def make_runner(
  job: worker.Job, config: cfg.ExperimentConfig, mode: str = "train_and_eval"
) -> train_lib.OrbitExperimentRunner:
  """Returns a runner that reports to the job; see `training.runner`."""
  return runner_lib.make_runner(
    config,
    str(job.path),
    mode=mode,
    actions=lambda trainer: [progress.report_loss(trainer, job.report)],
  )


def train(job: worker.Job) -> dict[str, Any]:
  """Trains and evaluates the run described in the job's directory.

  That it diverged is a result too: a run is not repeated to see it again.
  """
  config = read_config(job)
  runner = make_runner(job, config)
  try:
    runner.run()
  except recovery.Diverged as error:
    steps = int(runner.trainer.global_step.numpy())
    found = {"reason": error.problem, "steps": steps, "metrics": {}}
    return job.finish({"status": "diverged"} | found)
  log_dir = str(job.path / config.trainer.validation_summary_subdir)
  curves = scalars.read_scalars(log_dir)
  steps = config.trainer.train_steps
  if max((curve[-1][0] for curve in curves.values()), default=0) < steps:
    # It was interrupted after the last checkpoint, before its evaluation.
    with runner.strategy.scope():
      runner.controller.evaluate(config.trainer.validation_steps)
    curves = scalars.read_scalars(log_dir)
  metrics = job.read_about()["metrics"]
  for name in metrics:
    if name not in curves:
      raise errors.Failed(
        f"validation has no {name!r}, only {', '.join(sorted(curves))}"
      )
  result = {
    "status": "finished",
    "steps": curves[metrics[0]][-1][0],
    "metrics": {name: curves[name][-1][1] for name in metrics},
  }
  return job.finish(result)


def finetune(job: worker.Job) -> dict[str, Any]:
  """Trains, predicts the dev sets, and scores them.

  The split that selects comes first in the scores.
  """
  config = read_config(job)
  data = manifest.read(config.task.data_dir)
  steps = config.trainer.train_steps
  result = {"status": "finished", "task": data.task, "train_steps": steps}
  scores: dict[str, Any] = {}
  try:
    runner = make_runner(job, config, mode="train")
    with runner.strategy.scope():
      runner.controller.train(steps)
      job.report(progress.Status(step=steps, steps=steps, text="evaluating"))
      task, model = runner.trainer.task, runner.trainer.model
      if data.is_squad:
        scores["eval"] = predictions.evaluate_squad(task, model, job.path)
      else:
        splits, first = data.splits_of("dev"), task.task_config.eval_split
        for split in sorted(splits, key=lambda split: split.name != first):
          definition = glue_tasks.find_task(data.task)
          path = job.path / f"{split.name}.tsv"
          scores[split.name] = predictions.evaluate_glue(
            task, model, split, definition, path
          )
  except recovery.Diverged as error:
    result |= {"status": "diverged", "reason": error.problem}
  return job.finish(result | {"scores": scores})


def predict(job: worker.Job, ax_data_dir: str) -> dict[str, Any]:
  """Predicts the test sets of a finished GLUE run, for `swe submission`.

  Writes `test_result.json`, with the scores of the test sets that have labels.
  """
  config = read_config(job)
  runner = make_runner(job, config, mode="train")
  data = manifest.read(config.task.data_dir)
  splits = [(data.task, split) for split in data.splits_of("test")]
  if ax_data_dir:
    ax_data = manifest.read(ax_data_dir)
    found = ax_data.splits_of("test", "diagnostic")
    splits += [(ax_data.task, split) for split in found]
  scores = {}
  with runner.strategy.scope():
    for task, split in splits:
      scores[split.name] = predictions.evaluate_glue(
        runner.trainer.task,
        runner.trainer.model,
        split,
        glue_tasks.find_task(task),
        job.path / predictions.prediction_file(task, split.name),
      )
  content = {
    "ax_data_dir": ax_data_dir,
    "scores": {name: found for name, found in scores.items() if found},
  }
  files.write_json(job.path / "test_result.json", content)
  return content
