"""Finds checkpoints that a disk or a crash has damaged, and the one before.

A checkpoint carries a checksum of every tensor, which TensorFlow verifies when
it reads one. So a checkpoint is read to its end before it is restored: one that
is truncated or has a flipped bit is found before it overwrites anything. So is
one whose weights are not finite: no run can continue from there.
"""

from absl import logging
import tensorflow as tf

from swe_tf import errors
from swe_tf.modeling import checkpoint_files
from swe_tf.training import saved_weights
from swe_tf.training import saving


def why_broken(path: str) -> str | None:
  """Returns why a checkpoint cannot be read; None if it is sound."""
  try:
    reader = checkpoint_files.reader(path)
    weights = saved_weights.weight_keys(path)
    for key in reader.get_variable_to_shape_map():
      value = reader.get_tensor(key)
      if key in weights and not saving.is_finite(value):
        return f"{key.partition('/.ATTRIBUTES')[0]} is not finite"
  # What a reader raises depends on where the damage is.
  except (tf.errors.OpError, IndexError, ValueError, RuntimeError) as error:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
  return None


def newest_sound(path: str) -> str:
  """Returns a checkpoint or, if it is broken, the newest sound one before it.

  Args:
    path: The checkpoint to start with.

  Raises:
    UsageError: If neither it nor any before it can be read.
  """
  reasons: dict[str, str] = {}
  for candidate in _candidates(path):
    reason = why_broken(candidate)
    if reason is None:
      if reasons:
        logging.warning("Continuing from %s instead.", candidate)
        print(f"WARNING: continuing from {candidate} instead.", flush=True)
      return candidate
    reasons[candidate] = reason
    message = f"checkpoint {candidate} is damaged and not used: {reason}"
    logging.error(message)
    print(f"WARNING: {message}", flush=True)
  raise errors.UsageError(
    f"{path} is damaged, and so is every checkpoint before it: "
    f"{reasons[path]}. Copy an intact one here, or choose another model_dir to "
    "start from scratch."
  )


def _candidates(path: str) -> list[str]:
  """Returns a checkpoint and those before it in its directory, newest first."""
  state = tf.train.get_checkpoint_state(path.rpartition("/")[0] or ".")
  earlier = list(state.all_model_checkpoint_paths) if state else []
  if path not in earlier:
    return [path]
  return earlier[: earlier.index(path) + 1][::-1]
