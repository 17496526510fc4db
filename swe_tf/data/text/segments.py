"""Which files are read when: the order of a training run's input.

Pure arithmetic on file names and counts, for `resumable`. It reads no files.
"""

from collections.abc import Callable, Sequence
import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Segments:
  """The segments of one input pipeline, numbered from 0 through all passes.

  A pass reads all of the data once, in an order of its own. A segment is a
  group of `cycle_length` files of a pass (fewer at its end), read together.

  Pipelines divide the files among them, as in stock Model Garden. If there are
  fewer files than pipelines, every pipeline reads all files and takes its share
  of the records.

  Attributes:
    files: The names of all files.
    cycle_length: The number of files in a segment.
    seed: The seed of the order, or None for the given order in every pass.
    num_pipelines: The number of input pipelines.
    pipeline: The number of this one.
  """

  files: Sequence[str]
  cycle_length: int
  seed: int | None = None
  num_pipelines: int = 1
  pipeline: int = 0

  @property
  def records_are_sharded(self) -> bool:
    """Whether pipelines divide records, because there are too few files."""
    return len(self.files) < self.num_pipelines

  @property
  def per_pass(self) -> int:
    """The number of segments in a pass."""
    files = self.files
    if not self.records_are_sharded:
      files = files[self.pipeline :: self.num_pipelines]
    return -(-len(files) // self.cycle_length)

  @property
  def _passes_are_alike(self) -> bool:
    """Whether every pass yields the same number of records."""
    return self.num_pipelines == 1 or (
      self.records_are_sharded and self.per_pass == 1
    )

  def files_of(self, index) -> tf.Tensor:
    """Returns the names of a segment's files; runs eagerly or in a graph."""
    order = tf.constant(self.files)
    if self.seed is not None:
      order = tf.random.experimental.stateless_shuffle(
        order, seed=self._seed_of(index // self.per_pass)
      )
    if not self.records_are_sharded:
      order = order[self.pipeline :: self.num_pipelines]
    start = index % self.per_pass * self.cycle_length
    return order[start : start + self.cycle_length]

  def shuffle_seed(self, index) -> tf.Tensor:
    """Returns the seed to shuffle a segment's records with."""
    return tf.random.stateless_uniform(
      [], self._seed_of(index), minval=None, maxval=None, dtype=tf.int64
    )

  def _seed_of(self, number):
    return tf.stack([tf.cast(self.seed, tf.int64), tf.cast(number, tf.int64)])

  def size_of(self, index: int, count: Callable[[str], int]) -> int:
    """Returns the number of a segment's records that this pipeline yields."""
    size = sum(count(path.decode()) for path in self.files_of(index).numpy())
    if self.records_are_sharded:
      return len(range(self.pipeline, size, self.num_pipelines))
    return size

  def find(self, start: int, count: Callable[[str], int]) -> tuple[int, int]:
    """Finds the record `start` of this pipeline's stream.

    Args:
      start: The number of the record, from 0.
      count: Returns the number of records in a file. It is called only for
        files of segments up to that of the record.

    Returns:
      The record's segment, and its number within the segment.
    """
    index = passed = 0
    while True:
      size = self.size_of(index, count)
      if start < passed + size:
        return index, start - passed
      passed += size
      index += 1
      if index == self.per_pass:
        if not passed:
          raise ValueError(f"No examples in {', '.join(self.files)}.")
        if self._passes_are_alike:
          passes = start // passed
          index, passed = passes * self.per_pass, passes * passed
