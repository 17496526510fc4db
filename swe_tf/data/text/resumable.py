"""An input reader that can start at any training step.

Stock Model Garden starts the data from the beginning after a restart. Here
the batches are a pure function of the files, the seed and the step, and
`read(start_step=n)` yields what an uninterrupted run sees from step n on.

The stream of examples consists of *segments*: in each pass over the data the
files are put in a new order and divided into groups of `cycle_length`; a
segment is the examples of one group, interleaved and shuffled with a buffer. No
segment depends on another, so whole segments are skipped by arithmetic, and
only the examples of one group are skipped by reading, before they are decoded.
Batches are cut from the endless stream: a pass leaves no remainder.

Not resumable: the tf.data service, `cache` and TFDS. They read from the
beginning, as in Model Garden.
"""

from collections.abc import Callable
import functools

from absl import logging
import numpy as np
import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import input_reader
from swe_tf import messages
from swe_tf.data.text import segments as segments_lib

# The files of a segment, if `cycle_length` is not set. Stock Model Garden lets
# tf.data choose by the machine's cores, so the order would depend on them.
_CYCLE_LENGTH = 16


class ResumableInputReader(input_reader.InputReader):
  """Model Garden's `InputReader` with a `start_step`.

  It honours the fields of `DataConfig` as the stock reader does, except that
  the order is always deterministic and `seed: null` means 0.
  """

  def __init__(
    self,
    params: cfg.DataConfig,
    dataset_fn=tf.data.TFRecordDataset,
    count_fn: Callable[[str], int | None] | None = None,
    with_places: bool = False,
    **kwargs,
  ):
    """Initializes the reader.

    Args:
      params: The data config.
      dataset_fn: Takes the name of a file, a scalar string tensor, and returns
        the dataset of its examples. It must be deterministic.
      count_fn: Takes the name of a file and returns the number of its examples,
        or None if that is not known without reading.
      with_places: Whether elements are `(place, example)`, where the place
        counts the examples of this input pipeline from the beginning of the
        run. It is the key for drawing random numbers.
      **kwargs: The other arguments of `InputReader`.
    """
    self._matched_files: list[str] = []  # The base class finds them.
    super().__init__(params, dataset_fn=dataset_fn, **kwargs)
    self._resumable = not (
      params.enable_tf_data_service or params.cache or params.tfds_name
    )
    self._with_places = with_places
    if not self._resumable:
      return
    self._counts: dict[str, int] = {}
    self._count_fn = count_fn
    self._seed = params.seed or 0
    self._deterministic = True
    self._buffer_size = params.shuffle_buffer_size
    # The base class shuffles what it is given. Segments are already shuffled,
    # and a buffer of one leaves their order alone.
    self._shuffle_buffer_size = 1

  def read(
    self,
    input_context: tf.distribute.InputContext | None = None,
    dataset: tf.data.Dataset | None = None,
    start_step: int = 0,
  ) -> tf.data.Dataset:
    """Returns the batches of one input pipeline from `start_step` on.

    Args:
      input_context: The input pipeline, as in `InputReader.read`. In a step
        every replica takes one batch from its pipeline.
      dataset: As in `InputReader.read`: replaces the files, with no resuming.
      start_step: The number of steps already taken. Evaluation data always
        starts at 0.
    """
    if not self._resumable or dataset is not None:
      if start_step:
        messages.warn(
          f"the input starts from the beginning, not from step {start_step}: "
          "the tf.data service, `cache` and TFDS cannot be resumed."
        )
      return super().read(input_context, dataset)

    context = input_context or tf.distribute.InputContext()
    replicas = context.num_replicas_in_sync // context.num_input_pipelines
    examples_per_step = replicas * context.get_per_replica_batch_size(
      self._global_batch_size
    )
    start = start_step * examples_per_step if self._is_training else 0
    return super().read(input_context, self._stream(context, start))

  def _stream(
    self, context: tf.distribute.InputContext, start: int
  ) -> tf.data.Dataset:
    """Returns one pipeline's examples from its example `start` on."""
    segments = segments_lib.Segments(
      # Each file store lists its files in its own order.
      files=sorted(self._matched_files),
      cycle_length=self._cycle_length or _CYCLE_LENGTH,
      seed=self._seed if self._is_training else None,
      num_pipelines=context.num_input_pipelines if self._sharding else 1,
      pipeline=context.input_pipeline_id if self._sharding else 0,
    )
    first, rest = segments.find(start, self._count) if start else (0, 0)
    if start:
      logging.info(
        "Input pipeline %d starts at example %d: segment %d, %d "
        "examples skipped by reading.",
        context.input_pipeline_id,
        start,
        first,
        rest,
      )

    def read_segment(index):
      # The order depends on `train_data.seed` alone: a global seed, set for the
      # weights, must not reach the shuffle.
      tf.compat.v1.set_random_seed(None)
      dataset = tf.data.Dataset.from_tensor_slices(segments.files_of(index))
      dataset = dataset.interleave(
        self._dataset_fn,
        cycle_length=segments.cycle_length,
        block_length=self._block_length,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
      )
      if segments.records_are_sharded:
        dataset = dataset.shard(segments.num_pipelines, segments.pipeline)
      if self._is_training:
        seed = segments.shuffle_seed(index)
        dataset = dataset.shuffle(self._buffer_size, seed=seed)
      return dataset

    last = tf.int64.max if self._is_training else segments.per_pass
    stream = tf.data.Dataset.range(first, last).flat_map(read_segment)
    stream = stream.skip(rest)
    return stream.enumerate(start) if self._with_places else stream

  def _count(self, path: str) -> int:
    """Returns the number of examples in a file, reading it at most once."""
    if path not in self._counts:
      count = self._count_fn(path) if self._count_fn else None
      if count is None:
        logging.info("Counting the examples of %s.", path)
        count = int(self._count_by_reading(tf.constant(path)))
      self._counts[path] = count
    return self._counts[path]

  @functools.cached_property
  def _count_by_reading(self):
    # One graph for all files: building it takes longer than reading one.
    return tf.function(
      lambda path: self._dataset_fn(path).reduce(  # pylint: disable=g-long-lambda
        np.int64(0), lambda count, _: count + 1
      )
    )
