"""Checks that a run fits its directory: writable, enough room, the same run.

`swe train` prints the same findings as warnings and continues.
"""

from collections.abc import Iterator
import os
import pathlib
import shutil

import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.configs import cost as cost_lib
from swe_tf.configs import sameness
from swe_tf.doctor import findings

_SHOWN = 3


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
  if isinstance(before, dict):
    for field, then, now in sameness.difference(
      before, config.as_dict(), sameness.defines_training
    ):
      yield f"{field} was {then!r} and is {now!r}"


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
