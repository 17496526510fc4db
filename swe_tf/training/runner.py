"""The one place where a run is built, launched and resumed.

`run` does what Model Garden's driver does after parsing, for all of its modes;
`make_runner` builds what runs: precision, strategy, task, model and trainer.
`swe train` and the studies use them. `python -m official.nlp.train` with
`gin/swe.gin` is the other way in: there Model Garden builds all but the
trainer.
"""

from collections.abc import Callable, Sequence
import contextlib
import os
from typing import Any

import gin
import numpy as np
import orbit
import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import task_factory
from official.core import train_lib
from official.core import train_utils
from official.modeling import hyperparams
from official.modeling import performance
from official.nlp import continuous_finetune_lib
from swe_tf import files
from swe_tf import messages
from swe_tf.training import checkpoint
from swe_tf.training import devices
from swe_tf.training import interruption
from swe_tf.training import trainer as trainer_lib

# Makes the orbit actions that are called after each loop or evaluation.
Actions = Callable[
  [trainer_lib.SharedWeightsTrainer], Sequence[Callable[..., Any]]
]


class _Controller(orbit.Controller):
  """Orbit's controller; where its own lines are dropped, one for each event."""

  def restore_checkpoint(self, checkpoint_path=None):
    path = super().restore_checkpoint(checkpoint_path)
    if path and messages.is_quiet():
      messages.say(f"restored from checkpoint {path}")
    return path

  def evaluate(self, steps=-1):
    with messages.during("evaluating", announce=False):
      output = super().evaluate(steps)
    if messages.is_quiet():
      shown = ", ".join(
        f"{name} {value:.4f}"
        for name, value in output.items()
        if np.ndim(value) == 0 and name != "steps_per_second"
      )
      messages.say(f"evaluation at step {self.global_step.numpy()}: {shown}")
    return output

  def _maybe_save_checkpoint(self, check_interval=True):
    saved = super()._maybe_save_checkpoint(check_interval)
    if saved and messages.is_quiet():
      # An asynchronous one is not the manager's latest yet.
      step, folder = self.global_step.numpy(), self.checkpoint_manager.directory
      messages.say(f"saved checkpoint to {folder}/ckpt-{step}")
    return saved


class _Runner(train_lib.OrbitExperimentRunner):
  """Model Garden's runner, whose workers exit once they have saved."""

  def __init__(self, strategy, task, mode, config, model_dir, **kwargs):
    self._exits = config.trainer.preemption_on_demand_checkpoint
    # Else Model Garden adds an action that saves and keeps training.
    without = config.replace(trainer={"preemption_on_demand_checkpoint": False})
    super().__init__(strategy, task, mode, without, model_dir, **kwargs)

  def _build_controller(self, trainer, *args, train_actions=(), **kwargs):
    train_actions = list(train_actions)
    resolver, manager = self.strategy.cluster_resolver, self.checkpoint_manager
    if trainer and self._exits and resolver:
      step = trainer.global_step
      save = interruption.save_and_exit(resolver, manager, step)
      train_actions.append(save)
    return super()._build_controller(
      trainer, *args, train_actions=train_actions, **kwargs
    )


def make_runner(
  config: cfg.ExperimentConfig,
  model_dir: str,
  *,
  mode: str = "train_and_eval",
  strategy: tf.distribute.Strategy | None = None,
  actions: Actions = lambda trainer: (),
  eval_actions: Actions = lambda trainer: (),
  enable_async_checkpointing: bool = False,
  **trainer_arguments,
) -> train_lib.OrbitExperimentRunner:
  """Returns the runner, restored from `model_dir` or initialised.

  The experiment is validated, its mode any of Model Garden's but
  `continuous_train_and_eval`, and the strategy that of `config.runtime` by
  default. Asynchronous checkpoints are written in the background.
  """
  runtime = config.runtime
  performance.set_mixed_precision_policy(
    runtime.mixed_precision_dtype or "float32"
  )
  strategy = strategy or devices.make_strategy(runtime)
  with strategy.scope():
    task = task_factory.get_task(config.task, logging_dir=model_dir)
    trainer = trainer_lib.SharedWeightsTrainer(
      config,
      task,
      model=task.build_model(),
      optimizer=train_utils.create_optimizer(task, config),
      train="train" in mode,
      evaluate="eval" in mode,
      checkpoint_exporter=train_utils.maybe_create_best_ckpt_exporter(
        config, model_dir
      ),
      **trainer_arguments,
    )
  messages.say(devices.describe(strategy, trainer.model.trainable_weights))
  return _Runner(
    strategy,
    task,
    mode,
    config,
    model_dir,
    trainer=trainer,
    train_actions=actions(trainer),
    eval_actions=list(eval_actions(trainer)),
    enable_async_checkpointing=enable_async_checkpointing,
    controller_cls=_Controller,
  )


def _save_config(config: cfg.ExperimentConfig, model_dir: str) -> None:
  # As `train_utils.serialize_config`, but all or nothing.
  path = os.path.join(model_dir, "params.yaml")
  with files.complete_or_absent(path) as scratch:
    hyperparams.save_params_dict_to_yaml(config, scratch)


def run(
  config: cfg.ExperimentConfig,
  model_dir: str,
  mode: str,
  *,
  on_start: Callable[[trainer_lib.SharedWeightsTrainer], Any] | None = None,
  actions: Actions = lambda trainer: (),
  eval_actions: Actions = lambda trainer: (),
  enable_async_checkpointing: bool = True,
  pretrain_steps: int | None = None,
  verbose: bool = True,
  **trainer_arguments,
) -> None:
  """Runs or resumes an experiment, as the `main` of Model Garden's driver.

  `model_dir` gets checkpoints, summaries, `params.yaml` and gin's operative
  config. If the run trains, `on_start` is called once it is built and restored.
  `pretrain_steps` is for `continuous_train_and_eval`, which follows another
  run; see `make_runner` for the rest. Unless `verbose`, there is one line for
  each event, and none of what libraries print and log. After SIGTERM or Ctrl-C
  training saves a checkpoint and exits with `interruption.STATUS`. Works only
  in the main thread.
  """
  follows = mode == "continuous_train_and_eval"
  # What follows another run has Orbit's own controller, and its lines.
  quiet = contextlib.nullcontext() if verbose or follows else messages.quietly()
  # An evaluation has nothing to save: a signal ends it.
  watched: Any = contextlib.nullcontext()
  if "train" in mode:
    watched = interruption.watch()
  with watched, quiet, checkpoint.explain_full_disk(model_dir):
    if follows:
      _save_config(config, model_dir)
      with gin.unlock_config():
        gin.bind_parameter(
          "train_utils.create_trainer.trainer_cls",
          trainer_lib.SharedWeightsTrainer,
        )
      continuous_finetune_lib.run_continuous_finetune(
        mode, config, model_dir, pretrain_steps=pretrain_steps
      )
    else:
      with messages.during("building the model", announce=False):
        runner = make_runner(
          config,
          model_dir,
          mode=mode,
          actions=actions,
          eval_actions=eval_actions,
          enable_async_checkpointing=enable_async_checkpointing,
          **trainer_arguments,
        )
      # What is wrong with the run was found by now: nothing is written for a
      # run that cannot start. An evaluation must not race with its training.
      if "train" in mode:
        _save_config(config, model_dir)
        if on_start is not None:
          on_start(runner.trainer)
      runner.run()
    train_utils.save_gin_config(mode, model_dir)
