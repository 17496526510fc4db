r"""Runs an experiment; the flags are those of `official.nlp.train`.

    swe train --experiment=swe/bert_pretraining --mode=train_and_eval \
      --model_dir=DIR --config_file=experiments/models/base.yaml \
      --params_override=...

To the stock driver it adds what `gin/swe.gin` adds, a check of the
configuration and the data before anything is written, a progress bar, and a
clean exit: after SIGTERM or Ctrl-C it saves a checkpoint and exits with status
75, which means that the same command will resume.
"""

import contextlib
import dataclasses
import time
from typing import Any

from absl import logging
from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import options as opt
from swe_tf.commands import stock_options
from swe_tf.modeling import checkpoint_files
from swe_tf.studies import progress as progress_lib

_POLL_SECONDS = 30.0
_NAME = "train"  # Of the only run in the progress display.


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  mode: str = opt.flag("What to run.", choices=stock_options.MODES)
  model_dir: str = opt.flag("Directory for the run.")
  accept_changes: bool = opt.flag(
    "Continue a run whose config or data was another, and record the changes.",
    False,
  )


def run(options: Options) -> None:
  if options.mode == "train_and_validate":
    raise errors.UsageError(
      "--mode=train_and_validate is not in this version of Model Garden; use "
      "train_and_eval."
    )
  options.check_files()
  files.check_output_dir(options.model_dir, "model_dir")
  # TensorFlow takes seconds.
  from official.common import registry_imports  # noqa: F401 (registers)
  from swe_tf import registry  # noqa: F401 (registers)
  from swe_tf.configs import cluster
  from swe_tf.configs import experiment
  from swe_tf.configs import parsing
  from swe_tf.doctor import checks
  from swe_tf.studies import experiments
  from swe_tf.training import runner

  parsing.parse_gin(options)
  while True:
    try:
      config = parsing.parse_configuration(options)
      is_ours = isinstance(config, experiment.CheckedExperimentConfig)
      if is_ours:
        stock_options.check_inputs(options, config)
      break
    except checkpoint_files.NoCheckpoint as error:
      # It follows a run, which may not have saved yet.
      if options.mode != "continuous_train_and_eval":
        raise
      print(f"waiting, since {error}", flush=True)
      time.sleep(_POLL_SECONDS)
  if is_ours:
    experiments.check_metrics(config)
  checks.check_devices(config)
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)  # A schedule is built to be checked.
  if is_ours:
    for warning in checks.warnings(config, options.model_dir):
      print(f"WARNING: {warning}", flush=True)
  logging.set_verbosity(verbosity)
  shown = progress_lib.Progress(rich_console.Console(), {_NAME: 1.0})

  def start(trainer):
    step = int(trainer.global_step.numpy())
    shown.start(_NAME, step, config.trainer.train_steps)

  def report(status):
    shown.step(_NAME, status)

  locked: Any = contextlib.nullcontext()
  if "train" in options.mode and cluster.is_chief():
    locked = files.lock(options.model_dir)
  accepted = {"accept_changes": True} if options.accept_changes else {}
  with locked, shown:
    runner.run(
      config,
      options.model_dir,
      options.mode,
      on_start=start,
      actions=lambda trainer: [progress_lib.report_loss(trainer, report)],
      enable_async_checkpointing=options.enable_async_checkpointing,
      pretrain_steps=options.pretrain_steps,
      **accepted,
    )
