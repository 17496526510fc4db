"""The worker's job in a study: one run of pre-training."""

from collections.abc import Mapping, Sequence
import os
from typing import Any

import tf_keras

from official.core import config_definitions as cfg
from official.core import train_utils
from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import scalars
from swe_tf.studies import actions
from swe_tf.studies import experiments
from swe_tf.studies import hparams
from swe_tf.studies import worker
from swe_tf.training import runner as runner_lib
from swe_tf.training import trainer as trainer_lib


def train(
  job: worker.Job, experiment: str, metrics: Sequence[str]
) -> dict[str, Any]:
  """Trains and evaluates the run described in the job's directory.

  Args:
    job: The job.
    experiment: The name of the base experiment.
    metrics: The validation scalars to write to `result.json`.
  """
  assert job.directory is not None
  config = experiments.read_config(experiment, job.directory.config_file)
  config.lock()
  point = files.read_json(job.directory.path / "run.json")["axes"]
  hparams.write_run(job.path, point)
  _, curves = pretrain(job, config)
  absent = [name for name in metrics if name not in curves]
  if absent:
    raise errors.Failed(
      f"validation has no {absent[0]!r}, only {', '.join(sorted(curves))}"
    )
  hparams.write_run(job.path, point, is_finished=True)
  return job.finish(
    {
      "status": "finished",
      "steps": curves[metrics[0]][-1][0],
      "metrics": {name: curves[name][-1][1] for name in metrics},
    }
  )


def pretrain(
  job: worker.Job, config: cfg.ExperimentConfig, **trainer_arguments
) -> tuple[trainer_lib.SharedWeightsTrainer, Mapping[str, scalars.Curve]]:
  """Trains and evaluates, or resumes.

  Args:
    job: The job.
    config: The experiment.
    **trainer_arguments: Arguments for the trainer.

  Returns:
    The trainer after the last step, and the validation curves.
  """
  tf_keras.backend.clear_session()  # There may have been earlier runs.
  runner = runner_lib.make_runner(
    config,
    job.path,
    actions=lambda trainer: [actions.ReportLoss(trainer, job.report)],
    **trainer_arguments,
  )
  train_utils.serialize_config(config, job.path)
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
