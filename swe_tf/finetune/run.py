"""One run of a sweep: a Model Garden run in a directory of its own.

Besides Model Garden's checkpoints, `params.yaml` and summaries the directory
gets predictions for the dev set and, last of all, `result.json`: a run that
has it is finished. Called again, a run goes on from its checkpoint.
"""

from collections.abc import Callable
import pathlib
import time
from typing import Any

import tf_keras

from official.common import distribute_utils
from official.core import task_factory
from official.core import train_lib
from official.core import train_utils
from official.modeling import performance
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import prepared_data
from swe_tf.finetune import experiment
from swe_tf.finetune import plan
from swe_tf.finetune import predictions
from swe_tf.finetune import trainer as trainer_lib
from swe_tf.tasks import encoder_source

RESULT = "result.json"

# Is told the steps done, the steps of the run, and what is going on.
Report = Callable[[int, int, str], Any]


class _Watch:
  """An orbit action: reports after each loop, and ends a run that diverged."""

  def __init__(self, trainer, report: Report):
    self._trainer, self._report = trainer, report

  def __call__(self, output) -> None:
    config = self._trainer.config.trainer
    step = int(self._trainer.global_step.numpy())
    loss = float(output["training_loss"])
    self._report(step, config.train_steps, f"loss {loss:.3f}")
    # Written so that it holds for NaN too. Model Garden has an action like
    # this one, but its error is that of any fault.
    if not loss <= config.loss_upper_bound:
      raise plan.Diverged(f"loss {loss:g} at step {step}")


def _make_runner(config, directory: str, report: Report):
  """Returns Model Garden's runner, restored or initialised."""
  tf_keras.backend.clear_session()
  performance.set_mixed_precision_policy(
    config.runtime.mixed_precision_dtype or "float32"
  )
  strategy = distribute_utils.get_distribution_strategy(
    distribution_strategy=config.runtime.distribution_strategy,
    all_reduce_alg=config.runtime.all_reduce_alg,
    num_gpus=config.runtime.num_gpus,
    tpu_address=config.runtime.tpu,
    **config.runtime.model_parallelism(),
  )
  with strategy.scope():
    task = task_factory.get_task(config.task, logging_dir=directory)
    with trainer_lib.dropout_with_state():
      model = task.build_model()
    trainer = trainer_lib.FineTuningTrainer(
      config,
      task,
      model,
      train_utils.create_optimizer(task, config),
      train=True,
      evaluate=False,
    )
  runner = train_lib.OrbitExperimentRunner(
    strategy,
    task,
    "train",
    config,
    directory,
    trainer=trainer,
    train_actions=[_Watch(trainer, report)],
  )
  return runner, task


def check(settings: plan.Settings, run: plan.Run) -> str:
  """Checks that a run can start; writes nothing.

  Args:
    settings: What all runs of the sweep have in common.
    run: Any of them.

  Returns:
    The prefix of the checkpoint that is meant.

  Raises:
    UsageError: If data, checkpoint and settings do not go together.
  """
  config = experiment.build_config(settings, run)
  task = task_factory.get_task(config.task)
  task.initialize(task.build_model())
  return encoder_source.find_encoder(settings.checkpoint).checkpoint


def train(
  settings: plan.Settings, run: plan.Run, directory: str, report: Report
) -> dict[str, Any]:
  """Trains, evaluates on the dev set, and writes `result.json`.

  Args:
    settings: What all runs of the sweep have in common.
    run: The run.
    directory: Its directory.
    report: Is told of the progress.

  Returns:
    The content of `result.json`.
  """
  start = time.monotonic()
  config = experiment.build_config(settings, run)
  data = prepared_data.read_prepared_data(settings.data_dir)
  steps = config.trainer.train_steps
  result = {
    "status": "finished",
    "task": data.task,
    "learning_rate": run.learning_rate,
    "seed": run.seed,
    "train_steps": steps,
    "scores": {},
  }
  try:
    runner, task = _make_runner(config, directory, report)
    train_utils.serialize_config(config, directory)
    with runner.strategy.scope():
      runner.controller.train(steps)
      report(steps, steps, "evaluating")
      result["scores"] = _evaluate(
        task, runner.trainer.model, data, pathlib.Path(directory)
      )
  except plan.Diverged as error:
    result |= {"status": "diverged", "reason": str(error)}
  result["seconds"] = round(time.monotonic() - start, 1)
  files.write_json(pathlib.Path(directory) / RESULT, result)
  return result


def _evaluate(task, model, data, directory: pathlib.Path):
  """Returns the scores by split, the split that selects first."""
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
  settings: plan.Settings,
  run: plan.Run,
  directory: str,
  ax_data_dir: str,
  report: Report,
) -> dict[str, Any]:
  """Predicts the test sets of a finished GLUE run, for `swe submission`.

  Args:
    settings: What all runs of the sweep have in common.
    run: The run.
    directory: Its directory, with its checkpoint.
    ax_data_dir: What `swe prepare glue --task=AX` wrote, for MNLI; may be
      empty.
    report: Is told of the progress.

  Returns:
    The scores of the test sets that have labels, by split.
  """
  config = experiment.build_config(settings, run)
  steps = config.trainer.train_steps
  report(steps, steps, "predicting the test set")
  runner, task = _make_runner(config, directory, report)
  data = prepared_data.read_prepared_data(settings.data_dir)
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
        task,
        runner.trainer.model,
        split,
        glue_tasks.find_task(holder.task),
        pathlib.Path(directory) / prediction_file(holder, split),
      )
      if found:
        scores[split.name] = found
  return scores


def prediction_file(
  data: prepared_data.PreparedData, split: prepared_data.Split
) -> str:
  """Returns the name under which `swe submission` looks for predictions."""
  named = {
    ("MNLI", "test_matched"): "MNLI-m.tsv",
    ("MNLI", "test_mismatched"): "MNLI-mm.tsv",
    ("AX", "diagnostic"): "AX.tsv",
    ("AX", "test"): "AX.tsv",
  }
  default = "predictions.tsv" if split.name == "test" else f"{split.name}.tsv"
  return named.get((data.task, split.name), default)
