"""Checks that a run fits its directory: writable, enough room, the same run.

`swe train` prints the same findings as warnings and continues.
"""

from collections.abc import Iterator, Mapping
import os
import pathlib
import shutil
from typing import Any

import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import findings

_SHOWN = 3
# Fields that may change when a run is resumed: they do not affect the updates.
_HOW_ONLY = (
  "runtime.",
  "task.init_checkpoint",
  "task.micro_batches",
  "task.skip_bad_shards",
  "task.validation_data.",
  "trainer.best_checkpoint",
  "trainer.checkpoint_interval",
  "trainer.continuous_eval_timeout",
  "trainer.eval_tf",
  "trainer.loss_upper_bound",
  "trainer.max_to_keep",
  "trainer.preemption",
  "trainer.recovery",
  "trainer.steps_per_loop",
  "trainer.summary_interval",
  "trainer.train_tf",
  "trainer.validation",
)


def check_model_dir(config: cfg.ExperimentConfig, directory: str | None) -> str:
  """Describes the directory; raises if the run cannot be written there."""
  if not directory:
    return "none given"
  files.check_output_dir(directory, "model_dir")
  latest = tf.train.latest_checkpoint(directory)
  if latest is None:
    place = files.as_path(directory)
    empty = not place.exists() or not any(place.iterdir())
    return f"{directory}: {'new' if empty else 'not empty'}, no checkpoint"
  found = list(differences(config, directory))
  if found:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise errors.UsageError(
      f"model_dir ({directory}) has a run with another config, which would be "
      f"resumed: {'; '.join(found[:_SHOWN])}{more}. Choose another model_dir, "
      "or use that run's config."
    )
  return f"{directory}: would resume from {os.path.basename(latest)}"


def differences(config: cfg.ExperimentConfig, directory: str) -> Iterator[str]:
  """Yields the differences from the `params.yaml` in the directory."""
  path = files.as_path(directory) / "params.yaml"
  before = yaml_files.read(path) if path.exists() else None
  if not isinstance(before, dict):
    return
  then, now = (dict(_flat(each)) for each in (before, config.as_dict()))
  for name, value in now.items():
    if then.get(name) != value and not name.startswith(_HOW_ONLY):
      yield f"{name} was {then.get(name)!r} and is {value!r}"


def _flat(table: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
  if isinstance(table, Mapping):
    for key, value in table.items():
      yield from _flat(value, f"{prefix}.{key}".lstrip("."))
  else:
    yield prefix, list(table) if isinstance(table, tuple) else table


def check_room(config: cfg.ExperimentConfig, directory: str | None) -> str:
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
    f"{count} checkpoints of {findings.size(one)} (trainer.max_to_keep and the "
    "one being written)"
  )
  if not directory or files.is_url(directory):
    return f"{text}; the free space is not known"
  place = pathlib.Path(directory).absolute()
  held = sum(path.stat().st_size for path in place.glob("ckpt-*"))
  while not place.exists():
    place = place.parent
  free = shutil.disk_usage(place).free
  if need - held > free:
    raise errors.UsageError(
      f"{text} take {findings.size(need)}, but {place} has room for "
      f"{findings.size(free)}; free some space, lower trainer.max_to_keep or "
      "choose another model_dir."
    )
  return f"{text} take {findings.size(need)} of {findings.size(free)}"
