"""The checks of `swe doctor`: each returns a line about what a run would do."""

from collections.abc import Callable, Iterator

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


def run(
  config: cfg.ExperimentConfig, model_dir: str | None
) -> Iterator[tuple[str, str, str]]:
  """Yields each check's name, `ok`, `warn` or `fault`, and a line about it."""
  checks: dict[str, Callable[[], str]] = {
    "versions": environment.check_versions,
    "devices": lambda: check_devices(config),
    "data": lambda: data.check_data(config),
    "hosts": lambda: data.check_hosts(config),
    "model": lambda: _describe_model(cost_lib.estimate(config)),
    "init": lambda: check_init_checkpoint(config, model_dir),
    "phases": lambda: _describe_phases(cost_lib.estimate(config)),
    "batch": lambda: environment.describe_batch(config),
    "schedule": lambda: check_schedule(config),
    "precision": lambda: environment.check_precision(config),
    "model_dir": lambda: model_dir_lib.check_model_dir(config, model_dir),
    "room": lambda: model_dir_lib.check_room(config, model_dir),
  }
  if not isinstance(config, experiment.SharingExperimentConfig):
    del checks["model"], checks["phases"]  # Fine-tuning: one phase.
  for name, check in checks.items():
    try:
      yield name, "ok", check()
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
  cheap: list[Callable[[], str]] = [
    environment.check_versions,
    lambda: data.check_hosts(config),
    lambda: environment.check_precision(config),
    lambda: model_dir_lib.check_model_dir(config, model_dir),
  ]
  if config.runtime.distribution_strategy in ("off", "one_device", "mirrored"):
    # This makes an optimizer; workers and TPUs must be connected before that.
    cheap.append(lambda: model_dir_lib.check_room(config, model_dir))
  for check in cheap:
    try:
      check()
    except errors.UsageError as error:
      yield str(error)


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


def check_schedule(config: cfg.ExperimentConfig) -> str:
  """Describes the learning rate's peak and end; raises if they do not fit."""
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
    f"{optimization.optimizer.type}, peak {peak:g} at step {warmup_steps:,}, "
    f"{decay.end_learning_rate:g} at step {end:,}"
  )


def check_init_checkpoint(
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
  tf_keras.backend.clear_session()  # The run's layer names start over.
  return f"{path}: fits"


def _describe_model(cost: cost_lib.Cost) -> str:
  return (
    f"{cost.parameters:,} parameters, {cost.distinct_parameters:,} of "
    f"them different while shared, units {cost.units}"
  )


def _describe_phases(cost: cost_lib.Cost) -> str:
  return ", then ".join(
    f"{phase.steps:,} steps {name} (all-reduce "
    f"{findings.size(phase.all_reduce_bytes)} per step)"
    for name, phase in cost.phases.items()
  )
