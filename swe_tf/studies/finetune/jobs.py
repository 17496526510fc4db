"""The jobs of `swe finetune` for the worker: check, train, predict.

Besides Model Garden's checkpoints, `params.yaml` and summaries, the directory
of a run gets predictions for the dev set and, last of all, `result.json`. A run
that is started again resumes from its checkpoint.

`settings` and `run` are the fields of `protocol.Settings` and `protocol.Run`.
"""

from collections.abc import Mapping
from typing import Any

import tf_keras

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.core import task_factory
from swe_tf import files
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import parsing
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import prepared_data
from swe_tf.modeling import checkpoint_files
from swe_tf.studies import actions
from swe_tf.studies import status
from swe_tf.studies import worker
from swe_tf.studies.finetune import predictions
from swe_tf.studies.finetune import protocol
from swe_tf.tasks import encoder_source
from swe_tf.training import recovery
from swe_tf.training import runner as runner_lib
from swe_tf.training import saving

_Fields = Mapping[str, Any]


def build_config(
  settings: protocol.Settings, run: protocol.Run
) -> cfg.ExperimentConfig:
  """Returns the complete, locked config of a run.

  Raises:
    UsageError: If data, checkpoint and settings do not go together.
  """
  data = prepared_data.read_prepared_data(settings.data_dir)
  source = encoder_source.find_encoder(settings.checkpoint)
  encoder_source.check_vocabulary(source, data)
  config = exp_factory.get_exp_config(
    "swe/squad" if data.is_squad else "swe/glue"
  )
  config.task.model.encoder = source.encoder.config
  checkpoint = checkpoint_files.for_model_garden(source.checkpoint)
  is_random = settings.init == protocol.RANDOM
  rate = {"polynomial": {"initial_learning_rate": run.learning_rate}}
  config.override(
    {
      "task": {
        "data_dir": str(data.directory),
        "init_checkpoint": "" if is_random else checkpoint,
        "epochs": settings.epochs,
        "max_train_examples": settings.max_train_examples,
        "seed": run.seed,
        "train_data": {"seed": run.seed},
      },
      "trainer": {"optimizer_config": {"learning_rate": rate}},
    }
  )
  config = parsing.apply_overrides(config, settings.params_override)
  config.validate()
  config.lock()
  return config


def make_runner(config: cfg.ExperimentConfig, job: worker.Job):
  """Returns Model Garden's runner, restored or initialised."""
  tf_keras.backend.clear_session()  # This process may have done other runs.
  return runner_lib.make_runner(
    config,
    job.path,
    mode="train",
    actions=lambda trainer: [actions.ReportLoss(trainer, job.report)],
  )


def check(job: worker.Job, settings: _Fields, run: _Fields) -> str:
  """Checks that a run can start; returns the checkpoint that it starts from."""
  del job  # It has no directory: nothing is written.
  config = build_config(protocol.Settings(**settings), protocol.Run(**run))
  task = task_factory.get_task(config.task)
  task.initialize(task.build_model())
  return encoder_source.find_encoder(settings["checkpoint"]).checkpoint


def train(job: worker.Job, settings: _Fields, run: _Fields) -> dict[str, Any]:
  """Trains, evaluates on the dev set, and returns the new `result.json`."""
  config = build_config(protocol.Settings(**settings), protocol.Run(**run))
  data = prepared_data.read_prepared_data(settings["data_dir"])
  steps = config.trainer.train_steps
  result = {
    "status": "finished",
    "task": data.task,
    **run,
    "train_steps": steps,
    "scores": {},
  }
  try:
    runner = make_runner(config, job)
    saving.save_config(config, job.path)
    with runner.strategy.scope():
      runner.controller.train(steps)
      job.report(status.Status(step=steps, steps=steps, text="evaluating"))
      result["scores"] = _evaluate(
        runner.trainer, data, files.as_path(job.path)
      )
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


def predict(
  job: worker.Job, settings: _Fields, run: _Fields, ax_data_dir: str
) -> dict[str, Any]:
  """Predicts the test sets of a finished GLUE run, for `swe submission`.

  Args:
    job: The job, in the directory of the run with its checkpoint.
    settings: See the module's docstring.
    run: See the module's docstring.
    ax_data_dir: What `swe prepare glue --task=AX` wrote, for MNLI; may be
      empty.

  Returns:
    The scores of the test sets that have labels, by split.
  """
  config = build_config(protocol.Settings(**settings), protocol.Run(**run))
  runner = make_runner(config, job)
  data = prepared_data.read_prepared_data(settings["data_dir"])
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
        files.as_path(job.path) / predictions.prediction_file(holder, split),
      )
      if found:
        scores[split.name] = found
  return scores
