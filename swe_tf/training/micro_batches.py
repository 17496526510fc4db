"""Micro-batches: one update from a batch that does not fit in memory at once.

Each replica's batch is cut into parts that go forward and backward one after
another; their results are added up, and the update is made from the sums. The
loop over the parts is in the graph, not in Python: if it were unrolled, a
compiler would be free to keep the activations of all parts.

Not for: what is computed from a part (`swe_tf.tasks.mixins`), and which
gradients have to be kept (`swe_tf.sharing.wrapper`).
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors


def check(task: cfg.TaskConfig, replicas: int) -> None:
  """Raises `UsageError` unless the batch can be cut into micro-batches.

  The task may have no `micro_batches`; `replicas` may be a divisor of theirs.
  """
  count = getattr(task, "micro_batches", 1)
  if count == 1:
    return
  batch, least = task.train_data.global_batch_size, count * replicas
  if batch % least:
    raise errors.UsageError(
      f"task.train_data.global_batch_size ({batch}) cannot be divided into "
      f"task.micro_batches ({count}) on each of {replicas} replica(s): it must "
      f"be a multiple of {least}."
    )


def split(batch: Any, count: int) -> Any:
  """Cuts tensors [batch, ...], nested, into [count, batch / count, ...]."""

  def cut(tensor):
    parts = tf.reshape(
      tensor, tf.concat([[count, -1], tf.shape(tensor)[1:]], axis=0)
    )
    size = tensor.shape[0]
    parts.set_shape(
      [count, None if size is None else size // count, *tensor.shape[1:]]
    )
    return parts

  return tf.nest.map_structure(cut, batch)


def sum_over(
  function: Callable[[tf.Tensor, Any], Any], batch: Any, count: int
) -> Any:
  """Returns the sum of `function(index, part)` over the parts of a batch.

  Runs in a replica context; `function` is traced once, and returns tensors,
  IndexedSlices and None, nested. None stays None, and IndexedSlices are
  concatenated, not added: whatever is done to their rows is done to the rows of
  the whole batch.
  """
  parts = split(batch, count)
  # Traced before the loop, which must know what it will carry.
  of_part = tf.function(function, autograph=False).get_concrete_function(
    tf.TensorSpec([], tf.int32),
    tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), parts),
  )
  result = of_part.structured_outputs

  def add(index, sums):
    part = tf.nest.map_structure(lambda x: x[index], parts)
    given = tf.nest.flatten(of_part(index, part))
    return index + 1, [_add(s, x, index) for s, x in zip(sums, given)]

  _, sums = tf.while_loop(
    lambda index, _: index < count,
    add,
    (tf.constant(0), [_zero(x, count) for x in tf.nest.flatten(result)]),
    # More would keep the activations of more than one part in memory.
    parallel_iterations=1,
  )
  whole = map(_finish, sums, tf.nest.flatten(result))
  return tf.nest.pack_sequence_as(result, list(whole))


def _zero(like, count: int):
  if like is None:
    return ()
  if isinstance(like, tf.IndexedSlices):
    rows = [
      tf.TensorArray(x.dtype, count, element_shape=x.shape)
      for x in (like.values, like.indices)
    ]
    return *rows, tf.zeros(like.dense_shape.shape, like.dense_shape.dtype)
  return tf.zeros(like.shape, like.dtype)


def _add(total, summand, index: tf.Tensor):
  if summand is None:
    return ()
  if isinstance(summand, tf.IndexedSlices):
    values, indices, _ = total
    values = values.write(index, summand.values)
    indices = indices.write(index, summand.indices)
    return values, indices, summand.dense_shape
  return total + summand


def _finish(total, like):
  if like is None:
    return None
  if isinstance(like, tf.IndexedSlices):
    *rows, dense_shape = total
    stacked = (parts.stack() for parts in rows)
    values, indices = (
      tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0)) for x in stacked
    )
    return tf.IndexedSlices(values, indices, dense_shape)
  return total
