"""What `swe doctor` checks: one line each about what a run would do."""

from collections.abc import Callable, Iterator
import importlib.metadata
import os

import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import task_factory
from swe_tf import errors
from swe_tf import files
from swe_tf.configs import consistency
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import units_of_measure as show

_PACKAGES = ("tensorflow", "tf-keras", "tf-models-official")


def _versions(config: cfg.ExperimentConfig) -> str:
  del config
  return ", ".join(
    f"{package} {importlib.metadata.version(package)}" for package in _PACKAGES
  )


def check_devices(config: cfg.ExperimentConfig) -> str:
  """Says where the run would run; raises if there are not as many devices."""
  runtime = config.runtime
  kind = runtime.distribution_strategy
  if kind == "tpu":
    return f"TPU {runtime.tpu or 'of this machine'}; not connected to here"
  gpus = len(tf.config.list_physical_devices("GPU"))
  if runtime.num_gpus > gpus:
    raise errors.UsageError(
      f"runtime.num_gpus ({runtime.num_gpus}) is more than the {gpus} here."
    )
  consistency.check_replicas(config.as_dict())
  replicas = max(1, runtime.num_gpus)
  return f"{kind}, {replicas} {'GPU' if runtime.num_gpus else 'CPU'}"


def _data(config: cfg.ExperimentConfig) -> str:
  """Checks that the data is there, sound, and fits the model."""
  task_factory.get_task(config.task).check_data()
  data = config.task.train_data
  paths = data.input_path
  patterns = paths.split(",") if isinstance(paths, str) else paths
  found = sum(len(tf.io.gfile.glob(pattern)) for pattern in patterns)
  return (
    f"{found} files, batches of {data.global_batch_size} sequences of "
    f"{data.seq_length} tokens"
  )


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
  """Says when the learning rate is at its peak, and how it ends."""
  optimization = config.trainer.optimizer_config
  decay, warmup = optimization.learning_rate.get(), optimization.warmup.get()
  peak = getattr(decay, "initial_learning_rate", None)
  if peak is None or not getattr(decay, "decay_steps", None):
    return f"{optimization.learning_rate.type}"
  end = decay.decay_steps + (getattr(decay, "offset", 0) or 0)
  steps = config.trainer.train_steps
  if end != steps:
    raise errors.UsageError(
      f"the learning rate is decayed at step {end:,}, but the run ends at "
      f"{steps:,}: leave decay_steps unset, and it follows train_steps."
    )
  return (
    f"{optimization.optimizer.type}, peak {peak:g} at step "
    f"{getattr(warmup, 'warmup_steps', 0):,}, "
    f"{decay.end_learning_rate:g} at step {end:,}"
  )


def _model_dir(directory: str | None) -> str:
  """Says what is in the model directory already."""
  if not directory:
    return "none given"
  files.check_output_dir(directory, "model_dir")
  latest = tf.train.latest_checkpoint(directory)
  if latest:
    return f"{directory}: would resume from {os.path.basename(latest)}"
  path = files.as_path(directory)
  is_empty = not path.exists() or not any(path.iterdir())
  state = "new" if is_empty else "not empty"
  return f"{directory}: {state}, no checkpoint"


_CHECKS: dict[str, Callable[[cfg.ExperimentConfig], str]] = {
  "versions": _versions,
  "devices": check_devices,
  "data": _data,
  "model": _model,
  "phases": _phases,
  "schedule": _schedule,
}


def run(
  config: cfg.ExperimentConfig, model_dir: str | None
) -> Iterator[tuple[str, bool, str]]:
  """Yields each check's name, whether it passed, and a line about it."""
  for name, check in {
    **_CHECKS,
    "model_dir": lambda _: _model_dir(model_dir),
  }.items():
    try:
      yield name, True, check(config)
    except errors.UsageError as error:
      yield name, False, str(error)
