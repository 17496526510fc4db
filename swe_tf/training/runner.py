"""Model Garden's runner for an experiment, in one place.

Does what the stock driver does between parsing and running: sets up the
precision, the strategy, the task, its model and our trainer. Use it to run an
experiment inside a program; `swe train` goes through the stock driver itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from official.common import distribute_utils
from official.core import config_definitions as cfg
from official.core import task_factory
from official.core import train_lib
from official.core import train_utils
from official.modeling import performance
from swe_tf.training import trainer as trainer_lib


def make_runner(
  config: cfg.ExperimentConfig,
  model_dir: str,
  *,
  mode: str = "train_and_eval",
  strategy: tf.distribute.Strategy | None = None,
  actions: Callable[
    [trainer_lib.SharedWeightsTrainer], Sequence[Callable[..., Any]]
  ] = lambda trainer: (),
  **trainer_arguments,
) -> train_lib.OrbitExperimentRunner:
  """Returns the runner, restored from `model_dir` or initialised.

  Args:
    config: The experiment, validated.
    model_dir: The directory of the run.
    mode: `train`, `eval` or `train_and_eval`.
    strategy: The strategy; that of `config.runtime` by default.
    actions: Makes the orbit actions that are called after each training loop.
    **trainer_arguments: Arguments for the trainer.
  """
  runtime = config.runtime
  performance.set_mixed_precision_policy(
    runtime.mixed_precision_dtype or "float32"
  )
  strategy = strategy or distribute_utils.get_distribution_strategy(
    distribution_strategy=runtime.distribution_strategy,
    all_reduce_alg=runtime.all_reduce_alg,
    num_gpus=runtime.num_gpus,
    tpu_address=runtime.tpu,
    **runtime.model_parallelism(),
  )
  with strategy.scope():
    task = task_factory.get_task(config.task, logging_dir=model_dir)
    trainer = trainer_lib.SharedWeightsTrainer(
      config,
      task,
      model=task.build_model(),
      optimizer=train_utils.create_optimizer(task, config),
      train="train" in mode,
      evaluate="eval" in mode,
      **trainer_arguments,
    )
  return train_lib.OrbitExperimentRunner(
    strategy,
    task,
    mode,
    config,
    model_dir,
    trainer=trainer,
    train_actions=list(actions(trainer)),
  )
