"""Saving that fails: a full disk, a directory that is gone, weights of NaN.

Whatever happens, the last good checkpoint stays the newest one that a resumed
run finds, and nothing half-written lies beside it under a final name.
"""

from collections.abc import Iterable, Iterator
import contextlib
import errno
import os

import numpy as np
import tensorflow as tf

from swe_tf import errors

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
