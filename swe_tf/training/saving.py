"""Saving that fails: a full disk, a directory that is gone, weights of NaN.

Whatever happens, the last good checkpoint stays the newest one that a resumed
run finds, and nothing half-written lies beside it under a final name.
"""

from collections.abc import Iterable, Iterator
import contextlib
import errno
import os
from unittest import mock

import numpy as np
import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import train_utils
from official.modeling import hyperparams
from swe_tf import errors
from swe_tf import files

_FULL = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))
_WHAT_TO_DO = "mend it and run the same command again to resume from there."
_FREE = "free some space and run the same command again to resume from there."


def last_good(directory: str) -> str:
  """Says which checkpoint a run in the directory would be resumed from."""
  latest = tf.train.latest_checkpoint(directory)
  if latest is None:
    return "There is no checkpoint yet, so the run starts anew"
  return f"The last good checkpoint is {latest}"


def is_full(error: BaseException) -> bool:
  """Whether an error says that there is no room on a disk."""
  return any(text in str(error) for text in _FULL)


def _failed(what: str, error: BaseException, directory: str) -> errors.Failed:
  advice = _FREE if is_full(error) else _WHAT_TO_DO
  return errors.Failed(
    f"{what}: {errors.first_line(error)}. {last_good(directory)}: {advice}"
  )


@contextlib.contextmanager
def told(*prefixes: str) -> Iterator[None]:
  """Turns what a checkpoint that is not written raises into one line.

  Args:
    *prefixes: The checkpoints that may be under way, the newest last. What
      there is of one that is not finished is removed.
  """
  try:
    yield
  except (tf.errors.OpError, OSError) as error:
    directory = os.path.dirname(prefixes[-1])
    _remove_unfinished(directory, prefixes)
    raise _failed(
      f"cannot save a checkpoint in {directory}", error, directory
    ) from error


@contextlib.contextmanager
def full_disk_told(directory: str) -> Iterator[None]:
  """Turns a full disk in the block, for summaries say, into one line."""
  try:
    yield
  except (tf.errors.ResourceExhaustedError, OSError) as error:
    if not is_full(error):
      raise
    raise _failed(f"cannot write to {directory}", error, directory) from error


def save_config(config: cfg.ExperimentConfig, model_dir: str) -> None:
  """Does what `train_utils.serialize_config` does, all or nothing."""
  path = os.path.join(model_dir, "params.yaml")
  with files.complete_or_absent(path) as scratch:
    hyperparams.save_params_dict_to_yaml(config, scratch)


@contextlib.contextmanager
def config_saved_whole() -> Iterator[None]:
  """Has the stock driver, in the block, write `params.yaml` all or nothing."""
  with mock.patch.object(train_utils, "serialize_config", save_config):
    yield


def _remove_unfinished(directory: str, prefixes: tuple[str, ...]) -> None:
  state = tf.train.get_checkpoint_state(directory)
  finished = list(state.all_model_checkpoint_paths) if state else []
  for prefix in prefixes:
    if prefix in finished:
      continue
    with contextlib.suppress(tf.errors.OpError, OSError):
      for path in tf.io.gfile.glob([f"{prefix}.*", f"{prefix}_temp*"]):
        if tf.io.gfile.isdir(path):
          tf.io.gfile.rmtree(path)
        else:
          tf.io.gfile.remove(path)


def is_finite(value: np.ndarray) -> bool:
  """Whether an array has no NaN and no infinity in it."""
  # bfloat16 is no float to numpy, but can be asked.
  return value.dtype.kind in "iubSO" or bool(np.isfinite(value).all())


def not_finite(variables: Iterable[tf.Variable]) -> str | None:
  """Returns the name of a variable that has NaN or infinity in it, if any."""
  for variable in variables:
    if not is_finite(variable.numpy()):
      return variable.name
  return None
