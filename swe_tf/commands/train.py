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
import shlex
import time
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
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
  tracker: str | None = opt.flag(
    "Where else the curves go; configured by its own environment variables.",
    None,
    choices=("wandb", "mlflow"),
  )
  verbose: bool = opt.flag(
    "Print all that TensorFlow, Model Garden and Orbit print and log.", False
  )


def run(options: Options) -> None:
  if options.mode == "train_and_validate":
    raise errors.UsageError(
      "--mode=train_and_validate is not in this version of Model Garden; use "
      "train_and_eval."
    )
  follows = options.mode == "continuous_train_and_eval"
  if follows and (options.tracker or options.accept_changes):
    raise errors.UsageError(
      "--mode=continuous_train_and_eval knows neither --tracker nor "
      "--accept_changes: Model Garden starts its runs; leave them out."
    )
  options.check_files()
  files.check_output_dir(options.model_dir, "model_dir")
  with messages.during("starting TensorFlow"):
    from official.common import registry_imports  # noqa: F401 (registers)
    from swe_tf import registry  # noqa: F401 (registers)
    from swe_tf.configs import cost
    from swe_tf.configs import experiment
    from swe_tf.configs import parsing
    from swe_tf.doctor import checks
    from swe_tf.studies import experiments
    from swe_tf.training import devices
    from swe_tf.training import runner
    from swe_tf.training import trackers

  parsing.parse_gin(options)
  while True:
    try:
      with messages.during("checking the run", announce=False):
        config = parsing.parse_configuration(options)
        is_ours = isinstance(config, experiment.CheckedExperimentConfig)
        if is_ours:
          stock_options.check_inputs(options, config)
        else:
          stock_options.check_stock(config)
      break
    except checkpoint_files.NoCheckpoint as error:
      # It follows a run, which may not have saved yet.
      if not follows:
        raise
      print(f"waiting, since {error}", flush=True)
      time.sleep(_POLL_SECONDS)
  checks.check_devices(config)
  if is_ours:
    experiments.check_metrics(config)
    with messages.quietly():  # A schedule is built to be checked.
      found = checks.warnings(config, options.model_dir)
    for warning in found:
      messages.warn(warning)
  shown = progress_lib.Progress(messages.console(), {_NAME: 1.0})
  began, first = time.monotonic(), 0

  def start(trainer):
    nonlocal first
    first = int(trainer.global_step.numpy())
    shown.start(_NAME, first, config.trainer.train_steps)

  def report(status):
    shown.step(_NAME, status)

  locked: Any = contextlib.nullcontext()
  if "train" in options.mode and devices.is_chief():
    locked = files.lock(options.model_dir)
  tracked = None
  if options.tracker and devices.is_chief():
    kept = options.tracker, options.model_dir, config.as_dict()
    tracked = trackers.Tracker(*kept)

  def also(part, trainer):
    return [tracked.action(part, trainer)] if tracked else []

  accepted = {"accept_changes": True} if options.accept_changes else {}
  with locked, tracked or contextlib.nullcontext(), shown:
    runner.run(
      config,
      options.model_dir,
      options.mode,
      on_start=start,
      actions=lambda trainer: [
        progress_lib.report_loss(trainer, report),
        *also("train", trainer),
      ],
      eval_actions=lambda trainer: also("validation", trainer),
      enable_async_checkpointing=options.enable_async_checkpointing,
      pretrain_steps=options.pretrain_steps,
      verbose=options.verbose,
      **accepted,
    )
  if not devices.is_chief():
    return
  done, flops = "evaluated", ""
  if "train" in options.mode:
    done = f"trained steps {first:,} to {config.trainer.train_steps:,}"
    if isinstance(config, experiment.SharingExperimentConfig):
      with contextlib.suppress(errors.UsageError):  # Of BERT only.
        flops = f" (all steps: {cost.training_flops(config):.2e} FLOPs)"
  spent = progress_lib.show_time(time.monotonic() - began)
  messages.say(f"{done} in {spent}{flops}: {options.model_dir}")
  messages.say(f"curves: tensorboard --logdir={shlex.quote(options.model_dir)}")
  if is_ours:
    name = options.model_dir.rstrip("/")
    out = {"format": "savedmodel", "output_dir": f"{name}_export"}
    messages.say_next("swe export", checkpoint=name, **out)
