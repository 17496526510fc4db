"""A resumed input equals the uninterrupted one."""

import os

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from official.nlp.data import pretrain_dataloader
from swe_tf.data import loaders
from swe_tf.data.text import pretrain_text
from swe_tf.data.text import segments

_RECORDS_PER_FILE = (7, 3, 11, 5, 9)
_TEXT = """The cat sat on the mat. It was warm there. It slept.

A dog came by. The dog saw the cat! Did the cat see the dog? It did not.
The dog went home.

"""
_WORDS = (
  "the cat sat on mat it was warm there slept a dog came by saw did see "
  "not went home . ! ?"
)


def _contexts(num_pipelines, num_replicas):
  return [
    tf.distribute.InputContext(num_pipelines, pipeline, num_replicas)
    for pipeline in range(num_pipelines)
  ]


def _batches(params, count, context=None, start_step=0):
  """Returns batches as bytes, so that all features are compared."""
  dataset = loaders.build_dataset(params, context, start_step)
  return [
    b"".join(batch[name].numpy().tobytes() for name in sorted(batch))
    for batch in dataset.take(count)
  ]


class ResumableTest(tf.test.TestCase, parameterized.TestCase):
  def _write_records(self):
    """Writes files whose records hold their own number."""
    folder = self.get_temp_dir()
    number = 0
    for index, size in enumerate(_RECORDS_PER_FILE):
      path = os.path.join(folder, f"{index}.tfrecord")
      with tf.io.TFRecordWriter(path) as writer:
        for _ in range(size):
          ints = lambda values: tf.train.Feature(
            int64_list=tf.train.Int64List(value=values)
          )
          features = {
            "input_ids": ints([number, number]),
            "input_mask": ints([1, 1]),
            "segment_ids": ints([0, 0]),
            "masked_lm_positions": ints([0]),
            "masked_lm_ids": ints([number]),
            "masked_lm_weights": tf.train.Feature(
              float_list=tf.train.FloatList(value=[1.0])
            ),
          }
          writer.write(
            tf.train.Example(
              features=tf.train.Features(feature=features)
            ).SerializeToString()
          )
          number += 1
    return pretrain_dataloader.BertPretrainDataConfig(
      input_path=os.path.join(folder, "*"),
      seq_length=2,
      max_predictions_per_seq=1,
      use_next_sentence_label=False,
      global_batch_size=4,
      cycle_length=2,
      shuffle_buffer_size=5,
      seed=17,
    )

  def _write_text(self):
    folder = self.get_temp_dir()
    for index in range(3):
      with open(os.path.join(folder, f"{index}.txt"), "w") as f:
        f.write(_TEXT * (index + 1))
    vocab = os.path.join(folder, "vocab")
    with open(vocab, "w") as f:
      f.write(
        "\n".join(
          ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + _WORDS.split()
        )
      )
    return pretrain_text.PretrainTextDataConfig(
      input_path=os.path.join(folder, "*.txt"),
      vocab_file_path=vocab,
      seq_length=16,
      global_batch_size=4,
      shuffle_buffer_size=5,
    )

  @parameterized.parameters(
    # One pipeline; its replicas; files shared by two; records shared by 8.
    ("records", 1, 1),
    ("records", 1, 2),
    ("records", 2, 4),
    ("records", 8, 8),
    ("text", 1, 2),
    ("text", 2, 4),
    ("text", 8, 8),
  )
  def test_resumed_equals_uninterrupted(self, kind, pipelines, replicas):
    params = self._write_records() if kind == "records" else self._write_text()
    params.global_batch_size = 2 * replicas
    per_step = replicas // pipelines
    first, *_, last = _contexts(pipelines, replicas) * 2
    # The shares of the two differ in size. Building one for text is slow.
    for context in (first, last) if kind == "records" else (last,):
      expected = _batches(params, 25 * per_step, context)
      for start in (1, 19):  # In the first pass, and in a later one.
        self.assertEqual(
          _batches(params, 6 * per_step, context, start),
          expected[start * per_step : (start + 6) * per_step],
        )

  def _numbers(self, params, count, context=None, start_step=0):
    """Returns the numbers of `count` records, in the order of the stream."""
    dataset = loaders.build_dataset(params, context, start_step).unbatch()
    return [int(x["masked_lm_ids"][0]) for x in dataset.take(count)]

  @parameterized.parameters("*", "2.tfrecord")
  def test_every_pass_has_every_record_once_in_a_new_order(self, files):
    params = self._write_records()
    params.input_path = params.input_path.replace("*", files)
    size = sum(_RECORDS_PER_FILE) if files == "*" else _RECORDS_PER_FILE[2]
    numbers = np.array(self._numbers(params, 3 * size)).reshape([3, size])
    self.assertLen(set(numbers[0]), size)
    for one_pass in numbers:
      self.assertCountEqual(one_pass, numbers[0])
    self.assertNotAllEqual(numbers[0], numbers[1])
    self.assertNotAllEqual(numbers[1], numbers[2])
    # Batches are cut from the stream: sizes are no multiples of the batch's,
    # and the step in which a pass ends has records of two passes.
    start = size // 4
    self.assertAllEqual(
      self._numbers(params, 4, start_step=start),
      numbers.ravel()[start * 4 : start * 4 + 4],
    )

  def test_the_order_does_not_depend_on_the_global_seed(self):
    params = self._write_records()
    tf.random.set_seed(1)
    first = self._numbers(params, 35)
    tf.random.set_seed(2)
    self.assertEqual(first, self._numbers(params, 35))

  def test_seeds_differ(self):
    params = self._write_records()
    first = self._numbers(params, 35)
    params.seed = 18
    self.assertNotEqual(first, self._numbers(params, 35))

  @parameterized.parameters(2, 8)
  def test_pipelines_share_the_records(self, num_pipelines):
    params = self._write_records()
    params.is_training = False
    params.drop_remainder = False
    params.global_batch_size = num_pipelines
    numbers = []
    for context in _contexts(num_pipelines, num_pipelines):
      numbers.extend(self._numbers(params, 100, context))
    self.assertCountEqual(numbers, range(sum(_RECORDS_PER_FILE)))

  def test_whole_passes_are_skipped_by_arithmetic(self):
    params = self._write_records()
    size = sum(_RECORDS_PER_FILE)
    far = size * 10**9  # Steps: this many records would take days to read.
    self.assertCountEqual(
      self._numbers(params, size, start_step=far), range(size)
    )

  def test_records_are_skipped_before_they_are_decoded(self):
    params = self._write_records()
    params.cycle_length = 5
    decoded = tf.Variable(0)

    class Loader(loaders.ResumablePretrainDataLoader):
      def _decode(self, record):
        decoded.assign_add(1)
        return super()._decode(record)

    params.prefetch_buffer_size = 1
    next(iter(Loader(params).load(start_step=7)))
    self.assertLess(decoded.numpy(), 28)

  def test_files_come_in_a_new_order_in_every_pass(self):
    files = [str(n) for n in range(10)]
    order = segments.Segments(files=files, cycle_length=4, seed=1)
    self.assertEqual(order.per_pass, 3)
    passes = [
      [f.decode() for i in range(3) for f in order.files_of(3 * n + i).numpy()]
      for n in range(2)
    ]
    self.assertCountEqual(passes[0], files)
    self.assertCountEqual(passes[1], files)
    self.assertNotEqual(passes[0], passes[1])

  def test_finding_a_record_counts_only_what_is_before_it(self):
    order = segments.Segments(
      files=[str(n) for n in range(100)], cycle_length=4, seed=1
    )
    counted = []

    def count(path):
      counted.append(path)
      return 10

    self.assertEqual(order.find(55, count), (1, 15))
    self.assertLen(counted, 8)

  def test_evaluation_sees_the_same_masks_whatever_the_batches(self):
    params = self._write_text()
    params.is_training = False
    params.drop_remainder = False

    def masks(batch_size, start_step=0):
      params.global_batch_size = batch_size
      dataset = loaders.build_dataset(params, start_step=start_step).unbatch()
      return [x["input_word_ids"].numpy().tolist() for x in dataset]

    expected = masks(4)
    self.assertGreater(len(expected), 10)
    self.assertEqual(masks(7), expected)
    self.assertEqual(masks(4, start_step=2), expected)

  def test_masks_are_new_in_every_pass(self):
    params = self._write_text()
    params.shuffle_buffer_size = 1
    params.input_path = params.input_path.replace("*", "2")
    params.is_training = False
    params.drop_remainder = False
    size = len(list(loaders.build_dataset(params).unbatch()))
    params.is_training = True
    masked = [
      tuple(x["masked_lm_positions"].numpy())
      for x in loaders.build_dataset(params).unbatch().take(2 * size)
    ]
    self.assertNotEqual(masked[:size], masked[size:])

  def test_no_resuming_with_cache(self):
    params = self._write_records()
    params.cache = True
    with self.assertLogs(level="WARNING") as logs:
      loaders.build_dataset(params, start_step=3)
    self.assertIn("starts from the beginning", logs.output[0])
