"""The checks of `swe doctor`: each returns a line about what a run would do.

A check raises `UsageError` for a fault, which keeps the run from starting or
from doing what was intended, and `Warned` for what may be intended.
`swe train` prints what the cheap ones find as warnings and continues.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import importlib.metadata
import os
import pathlib
import shutil
from typing import TypeAlias

import tensorflow as tf
import tf_keras

from official.core import config_definitions as cfg
from official.core import input_reader
from official.core import task_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf import sameness
from swe_tf.configs import cost as cost_lib
from swe_tf.configs import experiment
from swe_tf.configs import limits
from swe_tf.data import checks as data_checks
from swe_tf.data import loaders
from swe_tf.data.prepare import manifest
from swe_tf.modeling import registry
from swe_tf.training import checkpoint
from swe_tf.training import devices
from swe_tf.training import identity
from swe_tf.training import trainer

# The others are each built for one version of the first.
_PACKAGES = ("tensorflow", "tf-keras", "tf-models-official", "tensorflow-text")
_SERIES = "2.20"
# The most files to look into, evenly spaced if there are more.
_SAMPLE = 64
# How often masks that never change may be seen; Model Garden has 10 copies.
_MOST_PASSES = 10

_Config: TypeAlias = cfg.ExperimentConfig


class Warned(errors.UsageError):
  """The run would start, but look at this first."""


def check_versions(*_) -> str:
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


def check_devices(config: _Config, *_) -> str:
  """Describes the devices of the run; raises if there are too few here."""
  runtime = config.runtime
  kind, address = devices.resolve(runtime)
  if kind == "tpu":
    return f"TPU {address}; not connected to here"
  gpus = len(tf.config.list_physical_devices("GPU"))
  if runtime.num_gpus > gpus:
    raise errors.UsageError(
      f"runtime.num_gpus ({runtime.num_gpus}) is more than the {gpus} on this "
      "machine."
    )
  weights, memory = 0, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
  with contextlib.suppress(errors.UsageError):  # Not known for every encoder.
    weights = cost_lib.weight_bytes(config)
  if weights > memory:
    raise errors.UsageError(
      f"the weights take {messages.size(weights)}, but this machine has "
      f"{messages.size(memory)}; make the encoder smaller."
    )
  limits.check_replicas(config, devices.num_workers(runtime))
  replicas = max(1, runtime.num_gpus)
  return f"{kind}, {replicas} {'GPU' if runtime.num_gpus else 'CPU'}"


def check_data(config: _Config, *_) -> str:
  """Checks that the data exists, is sound file by file, and fits the model."""
  task = task_factory.get_task(config.task)
  warnings = task.check_data() if hasattr(task, "check_data") else []
  lines = []
  encoder = registry.encoder_of(config.task.as_dict())
  for name in ("train_data", "validation_data"):
    data = getattr(config.task, name)
    if not data.input_path or data.input_path == "dummy":
      continue
    paths = input_reader.match_files(data.input_path)
    lines.append(f"{name}: {len(paths)} file(s)")
    if isinstance(data, loaders.PretrainTextDataConfig):
      continue  # The task has read their beginnings.
    some = paths
    if len(paths) > _SAMPLE:
      some = [paths[i * len(paths) // _SAMPLE] for i in range(_SAMPLE)]
    for path in filter(tf.io.gfile.exists, some):
      if isinstance(data, pretrain_dataloader.BertPretrainDataConfig):
        if path == some[0] and name == "train_data":
          warnings += _repeated_masks(config, paths)
        vocab_size = encoder.vocab_size if encoder else None
        data_checks.check_record(data, path, vocab_size)
      elif not path.endswith(".json"):  # The answers of SQuAD.
        data_checks.check_parses(data, path)
    lines.append(f"a record of {len(some)} read")
  if warnings:
    raise Warned(" ".join(warnings))
  data = config.task.train_data
  length = getattr(data, "seq_length", None)
  shape = f"sequences of {length} tokens" if length else "examples"
  return ", ".join([*lines, f"batches of {data.global_batch_size} {shape}"])


def _repeated_masks(config: _Config, paths: Sequence[str]) -> list[str]:
  """Returns a warning if prepared masks are seen often enough to be learned."""
  sizes = [*map(manifest.counter(), paths)]
  known = sum(size or 0 for size in sizes)
  if None in sizes or not known:
    return []
  data, steps = config.task.train_data, config.trainer.train_steps
  passes = steps * data.global_batch_size / known
  if passes <= _MOST_PASSES:
    return []
  return [
    f"task.train_data has {known:,} masked examples, so each is seen "
    f"{passes:,.0f} times with the same masks; prepare it with --fresh_masks "
    "and train swe/bert_pretraining_text."
  ]


def _describe_model(config: _Config, *_) -> str:
  if not hasattr(config.task, "sharing"):
    raise Warned(f"{trainer.NO_METHOD}.")
  try:
    cost = cost_lib.estimate(config)
  except errors.UsageError as error:
    return f"cost not known, because {error}"
  phases = ", then ".join(
    f"{phase.steps:,} steps {name} (all-reduce "
    f"{messages.size(phase.all_reduce_bytes)} per step)"
    for name, phase in cost.phases.items()
  )
  return (
    f"{cost.parameters:,} parameters, {cost.distinct_parameters:,} of "
    f"them different while shared, units {cost.units}: {phases}"
  )


def check_init_checkpoint(config: _Config, model_dir: str | None) -> str:
  """Checks that `task.init_checkpoint` fits the model."""
  path = config.task.init_checkpoint
  if not path:
    return "none: random initial weights"
  if model_dir and checkpoint.latest(model_dir):
    return f"{path}: not read, because the run is resumed"
  task = task_factory.get_task(config.task)
  task.initialize(task.build_model())
  tf_keras.backend.clear_session()  # The run's layer names start over.
  return f"{path}: fits"


def check_schedule(config: _Config, *_) -> str:
  """Describes the learning rate's peak and end; raises if they do not fit."""
  optimization = config.trainer.optimizer_config
  decay, warmup = optimization.learning_rate.get(), optimization.warmup.get()
  peak = getattr(decay, "initial_learning_rate", None)
  if peak is None or not getattr(decay, "decay_steps", None):
    return f"{optimization.learning_rate.type}"
  end = decay.decay_steps + (getattr(decay, "offset", 0) or 0)
  steps = config.trainer.train_steps
  if end != steps:
    text = (
      f"the learning rate is fully decayed at step {end:,}, but the run ends "
      f"at {steps:,}"
    )
    if isinstance(config, experiment.CheckedExperimentConfig):
      raise errors.UsageError(
        f"{text}: leave decay_steps unset to make it follow train_steps."
      )
    raise Warned(f"{text}; set decay_steps to what you mean.")
  warmup_steps = getattr(warmup, "warmup_steps", 0) or 0
  if warmup_steps >= steps:
    raise Warned(
      f"the warm-up takes {warmup_steps:,} steps and the run has {steps:,}: "
      "the learning rate never reaches its peak; lower warmup_steps, or leave "
      "it unset."
    )
  return (
    f"{optimization.optimizer.type}, peak {peak:g} at step {warmup_steps:,}, "
    f"{getattr(decay, 'end_learning_rate', 0):g} at step {end:,}"
  )


def check_precision(config: _Config, *_) -> str:
  """Describes the precision and the loss scaling; raises if they are wrong."""
  runtime, scale = config.runtime, config.runtime.loss_scale
  precision = runtime.mixed_precision_dtype or "float32"
  if precision != "float16":
    if scale is None:
      return f"{precision}, no loss scaling"
    raise Warned(
      f"runtime.loss_scale ({scale}) is not used with {precision}; unset it, "
      "or set runtime.mixed_precision_dtype=float16."
    )
  if runtime.distribution_strategy == "tpu":
    raise errors.UsageError(
      "runtime.mixed_precision_dtype is float16, which TPUs do not support; "
      "set it to bfloat16."
    )
  is_number = isinstance(scale, (int, float)) and scale > 0
  if scale not in (None, "dynamic") and not is_number:
    raise errors.UsageError(
      f"runtime.loss_scale ({scale!r}) must be 'dynamic' or a number above 0."
    )
  if not runtime.num_gpus:
    raise Warned(
      "runtime.mixed_precision_dtype is float16, which on a CPU is slower than "
      "float32; unset it, or set runtime.num_gpus."
    )
  return f"float16, loss scale {scale or 'dynamic'}"


def check_model_dir(config: _Config, model_dir: str | None) -> str:
  """Describes the directory; raises if it has a run of another config."""
  if not model_dir:
    return "none given"
  files.check_output_dir(model_dir, "model_dir")
  place = files.as_path(model_dir)
  latest = checkpoint.latest(model_dir)
  if latest is None:
    empty = not place.exists() or not any(place.iterdir())
    return f"{model_dir}: {'new' if empty else 'not empty'}, no checkpoint"
  # The data is compared when the run begins; here it may not be at hand.
  with checkpoint.readable(latest):
    with identity.Identity(config).check(latest, None, accept=False):
      pass
  changed = sameness.describe_accepted(model_dir)
  if changed:
    raise Warned(
      f"{model_dir}: would resume from {os.path.basename(latest)}; its run was "
      f"changed on the way: {changed}."
    )
  return f"{model_dir}: would resume from {os.path.basename(latest)}"


def check_room(config: _Config, model_dir: str | None) -> str:
  """Estimates the size of the checkpoints; raises if the disk is too full."""
  try:
    weights, slots = cost_lib.memory(config)
  except errors.UsageError as error:
    return f"not known, because {error}"
  one = weights + slots
  if config.trainer.optimizer_config.ema is not None:
    one += weights
  count = config.trainer.max_to_keep + 1  # The next is written before one goes.
  need = count * one
  text = (
    f"{count} checkpoints of {messages.size(one)} (trainer.max_to_keep and the "
    "one being written)"
  )
  if not model_dir or files.is_url(model_dir):
    return f"{text}; the free space is not known"
  place = pathlib.Path(model_dir).absolute()
  held = sum(path.stat().st_size for path in place.glob("ckpt-*"))
  while not place.exists():
    place = place.parent
  free = shutil.disk_usage(place).free
  if need - held > free:
    raise errors.UsageError(
      f"{text} take {messages.size(need)}, but {place} has room for "
      f"{messages.size(free)}; free some space, lower trainer.max_to_keep or "
      "choose another model_dir."
    )
  return f"{text} take {messages.size(need)} of {messages.size(free)}"


_CHECKS: dict[str, Callable[[_Config, str | None], str]] = {
  "versions": check_versions,
  "devices": check_devices,
  "data": check_data,
  "model": _describe_model,
  "init": check_init_checkpoint,
  "schedule": check_schedule,
  "precision": check_precision,
  "model_dir": check_model_dir,
  "room": check_room,
}


def run(
  config: _Config,
  model_dir: str | None,
  names: Sequence[str] = tuple(_CHECKS),
  faults: Sequence[errors.UsageError] = (),
) -> Iterator[tuple[str, str, str]]:
  """Yields each check's name, `ok`, `warn` or `fault`, and a line about it.

  `faults` are those of the config: what follows from them is not said again.
  """
  said = {str(fault) for fault in faults}
  for name in names:
    if name == "model" and hasattr(config.task, "data_dir"):
      continue  # Fine-tuning: one phase.
    if name == "init" and faults:
      continue  # The model is not yet the one that is meant.
    text = ""
    with errors.keep(faults) as found, errors.part():
      text = _CHECKS[name](config, model_dir)
    for error in found:
      if str(error) not in said:
        is_warning = isinstance(error, Warned)
        yield name, "warn" if is_warning else "fault", str(error)
        said.add(str(error))
    if text and not found:
      yield name, "ok", text


def warnings(config: _Config, model_dir: str) -> Iterator[str]:
  """Yields the warnings that `swe train` prints first, from the cheap checks.

  The commands' own checks raise what would keep a run from starting.
  """
  cheap = ["versions", "precision", "model_dir"]
  if config.runtime.distribution_strategy in ("off", "one_device", "mirrored"):
    # This makes an optimizer; workers and TPUs must be connected before that.
    cheap.append("room")
  for _, verdict, text in run(config, model_dir, cheap):
    if verdict != "ok":
      yield text
