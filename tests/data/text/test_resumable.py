"""A resumed input equals the uninterrupted one."""

import numpy as np
import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf.data import loaders
from swe_tf.data.text import segments
from tests.data import corpus

_RECORDS_PER_FILE = (7, 3, 11, 5, 9)
_SIZE = sum(_RECORDS_PER_FILE)
_TEXT = """The cat sat on the mat. It was warm there. It slept.

A dog came by. The dog saw the cat! Did the cat see the dog? It did not.
The dog went home.

"""
_WORDS = (
  "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat it was warm there slept a "
  "dog came by saw did see not went home . ! ?"
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


def _numbers(params, count, context=None, start_step=0):
  """Returns the numbers of `count` records, in the order of the stream."""
  dataset = loaders.build_dataset(params, context, start_step).unbatch()
  return [int(x["masked_lm_ids"][0]) for x in dataset.take(count)]


def _example(number):
  ints = {
    "input_ids": [number, number],
    "input_mask": [1, 1],
    "segment_ids": [0, 0],
    "masked_lm_positions": [0],
    "masked_lm_ids": [number],
  }
  example = tf.train.Example()
  for name, values in ints.items():
    example.features.feature[name].int64_list.value.extend(values)
  example.features.feature["masked_lm_weights"].float_list.value.append(1.0)
  return example.SerializeToString()


@pytest.fixture(name="records")
def _records(tmp_path):
  """The config of files whose records hold their own number."""
  numbers = iter(range(_SIZE))
  for index, size in enumerate(_RECORDS_PER_FILE):
    with tf.io.TFRecordWriter(f"{tmp_path}/{index}.tfrecord") as writer:
      for _ in range(size):
        writer.write(_example(next(numbers)))
  return corpus.shards_config(
    input_path=f"{tmp_path}/*.tfrecord",
    seq_length=2,
    max_predictions_per_seq=1,
    global_batch_size=4,
    cycle_length=2,
    shuffle_buffer_size=5,
    seed=17,
  )


@pytest.fixture(name="text")
def _text(tmp_path):
  for index in range(3):
    (tmp_path / f"{index}.txt").write_text(_TEXT * (index + 1))
  (tmp_path / "vocab").write_text("\n".join(_WORDS.split()))
  return loaders.PretrainTextDataConfig(
    input_path=f"{tmp_path}/*.txt",
    vocab_file_path=f"{tmp_path}/vocab",
    seq_length=16,
    global_batch_size=4,
    shuffle_buffer_size=5,
  )


# One pipeline; its replicas; files shared by two; records shared by 8.
@pytest.mark.parametrize(
  "pipelines, replicas", [(1, 1), (1, 2), (2, 4), (8, 8)]
)
@pytest.mark.parametrize("kind", ["records", "text"])
def test_resumed_equals_uninterrupted(request, kind, pipelines, replicas):
  params = request.getfixturevalue(kind)
  params.global_batch_size = 2 * replicas
  per_step = replicas // pipelines
  first, *_, last = _contexts(pipelines, replicas) * 2
  # The shares of the two differ in size. Building one for text is slow.
  for context in (first, last) if kind == "records" else (last,):
    expected = _batches(params, 25 * per_step, context)
    for start in (1, 19):  # In the first pass, and in a later one.
      assert (
        _batches(params, 6 * per_step, context, start)
        == expected[start * per_step : (start + 6) * per_step]
      )


@pytest.mark.parametrize("files", ["*.tfrecord", "2.tfrecord"])
def test_every_pass_has_every_record_once_in_a_new_order(records, files):
  records.input_path = records.input_path.replace("*.tfrecord", files)
  size = _SIZE if files == "*.tfrecord" else _RECORDS_PER_FILE[2]
  numbers = np.array(_numbers(records, 3 * size)).reshape([3, size])
  assert len(set(numbers[0])) == size
  assert all(sorted(each) == sorted(numbers[0]) for each in numbers)
  assert len({tuple(each) for each in numbers}) == 3
  # Batches are cut from the stream: sizes are no multiples of the batch's,
  # and the step in which a pass ends has records of two passes.
  start = size // 4
  later = _numbers(records, 4, start_step=start)
  assert later == numbers.ravel()[start * 4 : start * 4 + 4].tolist()


def test_the_order_depends_on_the_seed_of_the_data_alone(records):
  tf.random.set_seed(1)
  first = _numbers(records, _SIZE)
  tf.random.set_seed(2)
  assert first == _numbers(records, _SIZE)
  records.seed = 18
  assert first != _numbers(records, _SIZE)


@pytest.mark.parametrize("num_pipelines", [2, 8])
def test_pipelines_share_the_records(records, num_pipelines):
  records.is_training = records.drop_remainder = False
  records.global_batch_size = num_pipelines
  numbers = []
  for context in _contexts(num_pipelines, num_pipelines):
    numbers.extend(_numbers(records, 100, context))
  assert sorted(numbers) == list(range(_SIZE))


def test_whole_passes_are_skipped_by_arithmetic(records):
  far = _SIZE * 10**9  # Steps: this many records would take days to read.
  numbers = _numbers(records, _SIZE, start_step=far)
  assert sorted(numbers) == list(range(_SIZE))


def test_records_are_skipped_before_they_are_decoded(records):
  records.cycle_length = 5
  records.prefetch_buffer_size = 1
  decoded = tf.Variable(0)

  class Loader(loaders.ResumablePretrainDataLoader):
    def _decode(self, record):
      decoded.assign_add(1)
      return super()._decode(record)

  next(iter(Loader(records).load(start_step=7)))
  assert decoded.numpy() < 28


def test_only_the_files_before_a_record_are_counted():
  order = segments.Segments([str(n) for n in range(100)], 4, seed=1)
  counted = []
  assert order.find(55, lambda path: counted.append(path) or 10) == (1, 15)
  assert len(counted) == 8


def test_evaluation_sees_the_same_masks_whatever_the_batches(text):
  text.is_training = text.drop_remainder = False

  def masks(batch_size, start_step=0):
    text.global_batch_size = batch_size
    dataset = loaders.build_dataset(text, start_step=start_step).unbatch()
    return [x["input_word_ids"].numpy().tolist() for x in dataset]

  expected = masks(4)
  assert len(expected) > 10
  assert masks(7) == masks(4, start_step=2) == expected


def test_masks_are_new_in_every_pass(text):
  text.shuffle_buffer_size = 1
  text.input_path = text.input_path.replace("*", "2")
  text.is_training = text.drop_remainder = False
  size = len(list(loaders.build_dataset(text).unbatch()))
  text.is_training = True
  masked = [
    tuple(x["masked_lm_positions"].numpy())
    for x in loaders.build_dataset(text).unbatch().take(2 * size)
  ]
  assert masked[:size] != masked[size:]


def test_text_takes_no_other_source_of_data(text):
  with pytest.raises(errors.UsageError, match="`tfds_name` is for the masked"):
    loaders.build_dataset(text.replace(tfds_name="wikipedia"))


def test_no_resuming_with_cache(records, capsys):
  records.cache = True
  loaders.build_dataset(records, start_step=3)
  assert "starts from the beginning" in capsys.readouterr().out
