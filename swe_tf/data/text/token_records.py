"""Packed sequences as records of two bytes per token, without masks.

`swe prepare pretraining --fresh_masks` writes them, and the loader of raw text
masks them while training. Masked shards of Model Garden's format take about
three times the space for each copy, and repeat their masks in every pass.
"""

from typing import Any

import numpy as np

from swe_tf import errors

BYTES_PER_TOKEN = 2
_MOST = 1 << 8 * BYTES_PER_TOKEN


def check_vocabulary(size: int) -> None:
  if size > _MOST:
    raise errors.UsageError(
      f"the vocabulary has {size} tokens, but fresh_masks stores at most "
      f"{_MOST}; prepare masked shards, or learn a smaller vocabulary."
    )


def encode(ids: np.ndarray, padding: int) -> list[bytes]:
  """Returns a record for each row of `ids`; padding at its end is left out.

  >>> encode(np.array([[2, 7, 3, 0]]), padding=0)
  [b'\\x02\\x00\\x07\\x00\\x03\\x00']
  """
  lengths = np.count_nonzero(ids != padding, axis=1)
  # What is missing in a record is read as 0, so [PAD] is stored as 0.
  stored = ((ids - padding) % _MOST).astype("<u2")
  return [row[:length].tobytes() for row, length in zip(stored, lengths)]


def decode(records: Any, seq_length: int, padding: int) -> Any:
  """Returns `int32[batch, seq_length]` ids of a batch of records, as tensors.

  >>> import tensorflow as tf
  >>> records = encode(np.array([[2, 7, 3, 1]]), padding=1)
  >>> decode(tf.constant(records), seq_length=4, padding=1).numpy().tolist()
  [[2, 7, 3, 1]]
  """
  import tensorflow as tf  # Takes seconds, which a check need not wait for.

  stored = tf.io.decode_raw(
    records, tf.uint16, fixed_length=seq_length * BYTES_PER_TOKEN
  )
  ids = (tf.cast(stored, tf.int32) + padding) % _MOST
  return tf.ensure_shape(ids, [None, seq_length])
