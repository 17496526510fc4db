"""The function of a run: trains and evaluates it, or resumes it.

`train` is for pre-training. Fine-tuning and the demo train in the same way and
measure other things at the end: `fit` is what all have in common.
"""

from collections.abc import Mapping
import os
from typing import Any

from official.core import config_definitions as cfg
from official.core import train_lib
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.analysis import scalars
from swe_tf.studies import actions
from swe_tf.studies import experiments
from swe_tf.studies import hparams
from swe_tf.studies import worker
from swe_tf.training import runner as runner_lib


def train(job: worker.Job) -> dict[str, Any]:
  """Trains and evaluates the run described in the job's directory."""
  point = job.directory.read_about()["axes"]
  hparams.write_run(job.path, point)
  _, curves = fit(job, read_config(job))
  result = last_metrics(job, curves)
  hparams.write_run(job.path, point, is_finished=True)
  return job.finish(result)


def last_metrics(
  job: worker.Job, curves: Mapping[str, scalars.Curve]
) -> dict[str, Any]:
  """Returns the `result.json` of a run with these validation curves."""
  metrics = job.directory.read_about()["metrics"]
  absent = [name for name in metrics if name not in curves]
  if absent:
    raise errors.Failed(
      f"validation has no {absent[0]!r}, only {', '.join(sorted(curves))}"
    )
  return {
    "status": "finished",
    "steps": curves[metrics[0]][-1][0],
    "metrics": {name: curves[name][-1][1] for name in metrics},
  }


def read_config(job: worker.Job) -> cfg.ExperimentConfig:
  """Returns the experiment in the job's directory, locked."""
  directory = job.directory
  config = experiments.read_config(
    directory.read_about()["experiment"], directory.config_file
  )
  config.lock()
  return config


def make_runner(
  job: worker.Job, config: cfg.ExperimentConfig, **arguments
) -> train_lib.OrbitExperimentRunner:
  """Returns a runner that reports to the job; see `training.runner`."""
  return runner_lib.make_runner(
    config,
    job.path,
    actions=lambda trainer: [actions.ReportLoss(trainer, job.report)],
    **arguments,
  )


def fit(
  job: worker.Job, config: cfg.ExperimentConfig, **trainer_arguments
) -> tuple[Any, Mapping[str, scalars.Curve]]:
  """Trains and evaluates, or resumes.

  Args:
    job: The job.
    config: The experiment.
    **trainer_arguments: Arguments for the trainer.

  Returns:
    The trainer after the last step, and the validation curves.
  """
  runner = make_runner(job, config, **trainer_arguments)
  runner.run()
  log_dir = os.path.join(job.path, "validation")
  curves = scalars.read_scalars(log_dir)
  steps = config.trainer.train_steps
  if max((curve[-1][0] for curve in curves.values()), default=0) < steps:
    # It was interrupted after the last checkpoint, before its evaluation.
    with runner.strategy.scope():
      runner.controller.evaluate(config.trainer.validation_steps)
    curves = scalars.read_scalars(log_dir)
  return runner.trainer, curves
