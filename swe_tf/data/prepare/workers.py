"""The processes of `swe prepare pretraining`: each writes whole shards.

A shard does not depend on the process that writes it, and gets its final name
only when it is complete.
"""

from collections.abc import Iterable, Iterator
from concurrent import futures
import multiprocessing
import os
import signal
import threading
from typing import Any

from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab as vocab_lib

# The `ShardWriter` of a process of the pool.
_writer: Any = None


def write_shards(
  blocks: Iterable[tuple[int, bytes]],
  settings: manifest.Settings,
  vocabulary: vocab_lib.Vocabulary,
  output_dir: str,
  jobs: int,
) -> Iterator[tuple[int, dict[str, int]]]:
  """Writes a shard for every block of text.

  Args:
    blocks: The numbers of the shards and their text.
    settings: What the shards are made with.
    vocabulary: The vocabulary.
    output_dir: The folder of the shards.
    jobs: The number of processes. With 1, this one does the work.

  Yields:
    The number and the counts of each shard when it is complete.
  """
  arguments = (settings, vocabulary, output_dir)
  if jobs == 1:
    from swe_tf.data.prepare import shards  # TensorFlow takes seconds.

    writer = shards.ShardWriter(*arguments)
    for index, text in blocks:
      yield index, writer.write(index, text)
    return
  # TensorFlow's threads do not survive a fork.
  context = multiprocessing.get_context("spawn")
  pool = futures.ProcessPoolExecutor(jobs, context, _start, arguments)
  try:
    running: set[futures.Future[Any]] = set()
    for block in blocks:
      running.add(pool.submit(_write, *block))
      # Blocks are large: read ahead just enough to keep all processes busy.
      while len(running) >= 2 * jobs:
        done, running = futures.wait(
          running, return_when=futures.FIRST_COMPLETED
        )
        yield from (future.result() for future in done)
    for future in futures.as_completed(running):
      yield future.result()
  finally:
    pool.shutdown(cancel_futures=True)


def _start(*arguments):
  """Sets up a process of the pool."""
  import tensorflow as tf

  from swe_tf.data.prepare import shards

  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides.
  threading.Thread(target=_end_with_parent, daemon=True).start()
  # The processes already share the cores.
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)
  global _writer
  _writer = shards.ShardWriter(*arguments)


def _end_with_parent():
  # If the parent is killed, the processes of a pool would wait forever.
  parent = multiprocessing.parent_process()
  if parent is not None:  # As in every process of a pool.
    parent.join()
  os._exit(1)


def _write(index, text):
  return index, _writer.write(index, text)
