"""Checks the packages, the precision and the batch of a run."""

import importlib.metadata

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.doctor import findings

# The others are each built for one version of the first.
_PACKAGES = ("tensorflow", "tf-keras", "tf-models-official", "tensorflow-text")
_SERIES = "2.20"


def check_versions() -> str:
  """Lists the installed versions; raises if they do not go together."""
  found = {}
  for package in _PACKAGES:
    try:
      found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      found[package] = "none"
    if not found[package].startswith(f"{_SERIES}."):
      raise errors.UsageError(
        f"this package needs {package} {_SERIES}, but {found[package]} is "
        f"installed; pip install '{package}=={_SERIES}.*'."
      )
  return ", ".join(f"{name} {version}" for name, version in found.items())


def check_precision(config: cfg.ExperimentConfig) -> str:
  """Describes the precision and the loss scaling; raises if they are wrong."""
  runtime = config.runtime
  precision = runtime.mixed_precision_dtype or "float32"
  scale = runtime.loss_scale
  if precision != "float16":
    if scale is not None:
      raise findings.Warned(
        f"runtime.loss_scale ({scale}) is not used with {precision}; unset it, "
        "or set runtime.mixed_precision_dtype=float16."
      )
    return f"{precision}, no loss scaling"
  if runtime.distribution_strategy == "tpu":
    raise errors.UsageError(
      "runtime.mixed_precision_dtype is float16, which TPUs do not support; "
      "set it to bfloat16."
    )
  if scale not in (None, "dynamic"):
    if not isinstance(scale, (int, float)) or scale <= 0:
      raise errors.UsageError(
        f"runtime.loss_scale ({scale!r}) must be 'dynamic' or a number above 0."
      )
    return f"float16, the loss scaled by {scale:g}"
  if not runtime.num_gpus:
    raise findings.Warned(
      "runtime.mixed_precision_dtype is float16, which on a CPU is slower than "
      "float32; unset it, or set runtime.num_gpus."
    )
  return "float16, dynamic loss scaling"


def describe_batch(config: cfg.ExperimentConfig) -> str:
  """Describes how the batch is divided, which `validate()` has checked."""
  batch = config.task.train_data.global_batch_size
  if config.runtime.distribution_strategy == "tpu":
    return f"{batch} sequences; for a TPU's replicas, see swe doctor tpu"
  parts = getattr(config.task, "micro_batches", 1)
  replicas = max(1, config.runtime.num_gpus)
  return (
    f"{batch} sequences = {replicas} replica(s) x {parts} micro-batch(es) x "
    f"{batch // replicas // parts}"
  )
