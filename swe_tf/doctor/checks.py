"""The checks of `swe doctor`: each returns a line about what a run would do."""

from collections.abc import Callable, Iterator
import functools

import tensorflow as tf
import tf_keras

from official.core import config_definitions as cfg
from official.core import task_factory
from swe_tf import errors
from swe_tf.configs import cost as cost_lib
from swe_tf.configs import experiment
from swe_tf.configs import limits
from swe_tf.doctor import data
from swe_tf.doctor import environment
from swe_tf.doctor import findings
from swe_tf.doctor import model_dir as model_dir_lib
from swe_tf.doctor import units_of_measure as show


def check_devices(config: cfg.ExperimentConfig) -> str:
  """Describes the devices of the run; raises if there are too few here."""
  runtime = config.runtime
  kind = runtime.distribution_strategy
  if kind == "tpu":
    return f"TPU {runtime.tpu or 'of this machine'}; not connected to here"
  gpus = len(tf.config.list_physical_devices("GPU"))
  if runtime.num_gpus > gpus:
    raise errors.UsageError(
      f"runtime.num_gpus ({runtime.num_gpus}) is more than the {gpus} on this "
      "machine."
    )
  limits.check_replicas(config)
  replicas = max(1, runtime.num_gpus)
  return f"{kind}, {replicas} {'GPU' if runtime.num_gpus else 'CPU'}"


def _model(config: cfg.ExperimentConfig) -> str:
  cost = cost_lib.estimate(config)
  return (
    f"{cost.parameters:,} parameters, {cost.distinct_parameters:,} of "
    f"them different while shared, units {cost.units}"
  )


def _phases(config: cfg.ExperimentConfig) -> str:
  cost = cost_lib.estimate(config)
  return ", then ".join(
    f"{phase.steps:,} steps {name} (all-reduce "
    f"{show.size(phase.all_reduce_bytes)} a step)"
    for name, phase in cost.phases.items()
  )


def _schedule(config: cfg.ExperimentConfig) -> str:
  """Describes the peak and the end of the learning rate schedule."""
  optimization = config.trainer.optimizer_config
  decay, warmup = optimization.learning_rate.get(), optimization.warmup.get()
  peak = getattr(decay, "initial_learning_rate", None)
  if peak is None or not getattr(decay, "decay_steps", None):
    return f"{optimization.learning_rate.type}"
  end = decay.decay_steps + (getattr(decay, "offset", 0) or 0)
  steps = config.trainer.train_steps
  if end != steps:
    raise errors.UsageError(
      f"the learning rate is fully decayed at step {end:,}, but the run ends "
      f"at {steps:,}: leave decay_steps unset to make it follow train_steps."
    )
  warmup_steps = getattr(warmup, "warmup_steps", 0) or 0
  if warmup_steps >= steps:
    raise findings.Warned(
      f"the warm-up takes {warmup_steps:,} steps and the run has {steps:,}: "
      "the learning rate never reaches its peak; lower warmup_steps, or leave "
      "it unset."
    )
  return (
    f"{optimization.optimizer.type}, peak {peak:g} at step "
    f"{warmup_steps:,}, "
    f"{decay.end_learning_rate:g} at step {end:,}"
  )


def _init_checkpoint(
  config: cfg.ExperimentConfig, directory: str | None
) -> str:
  """Checks that `task.init_checkpoint` fits the model."""
  path = config.task.init_checkpoint
  if not path:
    return "none: random initial weights"
  if directory and tf.train.latest_checkpoint(directory):
    return f"{path}: not read, because the run is resumed"
  task = task_factory.get_task(config.task)
  task.initialize(task.build_model())
  tf_keras.backend.clear_session()
  return f"{path}: fits"


def _all(
  config: cfg.ExperimentConfig, model_dir: str | None
) -> dict[str, Callable[..., str]]:
  checks: dict[str, Callable[..., str]] = {
    "versions": environment.check_versions,
    "devices": check_devices,
    "data": data.check_data,
    "hosts": data.check_hosts,
    "model": _model,
    "init": functools.partial(_init_checkpoint, directory=model_dir),
    "phases": _phases,
    "batch": environment.check_batch,
    "schedule": _schedule,
    "precision": environment.check_precision,
    "model_dir": functools.partial(
      model_dir_lib.check_model_dir, directory=model_dir
    ),
    "room": functools.partial(model_dir_lib.check_room, directory=model_dir),
  }
  if not isinstance(config, experiment.SharingExperimentConfig):
    del checks["model"], checks["phases"]  # Fine-tuning: one phase.
  return checks


def run(
  config: cfg.ExperimentConfig, model_dir: str | None
) -> Iterator[tuple[str, str, str]]:
  """Yields each check's name, `ok`, `warn` or `fault`, and a line about it."""
  for name, check in _all(config, model_dir).items():
    try:
      yield name, "ok", check(config)
    except findings.Warned as warning:
      yield name, "warn", str(warning)
    except errors.UsageError as error:
      yield name, "fault", str(error)


def warnings(config: cfg.ExperimentConfig, model_dir: str) -> Iterator[str]:
  """Yields the warnings that `swe train` prints first, from the cheap checks.

  The commands' own checks raise what would keep a run from starting.

  Args:
    config: An experiment of this package.
    model_dir: The run's directory.
  """
  cheap: list[Callable[[cfg.ExperimentConfig], str]] = [
    environment.check_versions,
    data.check_hosts,
    environment.check_precision,
    functools.partial(model_dir_lib.check_model_dir, directory=model_dir),
  ]
  if config.runtime.distribution_strategy in ("off", "one_device", "mirrored"):
    # This makes an optimizer; workers and TPUs must be connected before that.
    cheap.append(
      functools.partial(model_dir_lib.check_room, directory=model_dir)
    )
  for check in cheap:
    try:
      check(config)
    except errors.UsageError as error:
      yield str(error)
