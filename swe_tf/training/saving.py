"""Failures to save: a full disk, a directory that is gone, NaN weights.

Whatever happens, the last good checkpoint stays the newest one that a resumed
run finds, and nothing half-written is left beside it under a final name.
"""

from collections.abc import Iterable, Iterator
import contextlib
import errno
import os

import numpy as np
import tensorflow as tf

from official.core import config_definitions as cfg
from official.modeling import hyperparams
from swe_tf import errors
from swe_tf import files

_FULL = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))
_WHAT_TO_DO = "fix it and run the same command again to resume from there."
_FREE = "free some space and run the same command again to resume from there."


def last_good(directory: str) -> str:
  """Returns a sentence about the checkpoint that a run would resume from."""
  latest = tf.train.latest_checkpoint(directory)
  if latest is None:
    return "There is no checkpoint yet, so the run starts from scratch"
  return f"The last good checkpoint is {latest}"


def is_full(error: BaseException) -> bool:
  """Returns whether an error says that a disk is full."""
  return any(text in str(error) for text in _FULL)


def _failed(what: str, error: BaseException, directory: str) -> errors.Failed:
  advice = _FREE if is_full(error) else _WHAT_TO_DO
  return errors.Failed(
    f"{what}: {errors.first_line(error)}. {last_good(directory)}: {advice}"
  )


@contextlib.contextmanager
def explain_write_errors(*prefixes: str) -> Iterator[None]:
  """Turns a failure to write a checkpoint in the block into one line.

  Args:
    *prefixes: The checkpoints that may be under way, the newest last. The files
      of an unfinished one are removed.
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
def explain_full_disk(directory: str) -> Iterator[None]:
  """Turns a full disk in the block, say for summaries, into one line."""
  try:
    yield
  except (tf.errors.ResourceExhaustedError, OSError) as error:
    if not is_full(error):
      raise
    raise _failed(f"cannot write to {directory}", error, directory) from error


def save_config(config: cfg.ExperimentConfig, model_dir: str) -> None:
  """Writes `params.yaml` as `train_utils.serialize_config`, all or nothing."""
  path = os.path.join(model_dir, "params.yaml")
  with files.complete_or_absent(path) as scratch:
    hyperparams.save_params_dict_to_yaml(config, scratch)


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
  """Returns whether an array has no NaN and no infinity in it."""
  # numpy does not count bfloat16 as a float, but `isfinite` works on it.
  return value.dtype.kind in "iubSO" or bool(np.isfinite(value).all())


def not_finite(variables: Iterable[tf.Variable]) -> str | None:
  """Returns the name of a variable that has NaN or infinity in it, if any."""
  for variable in variables:
    if not is_finite(variable.numpy()):
      return variable.name
  return None
