"""Text in TFRecords and TFDS: the same batches as the same lines in a file."""

import os
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from swe_tf import errors
from swe_tf.commands import prepare_pretraining as command
from swe_tf.data import checks
from swe_tf.data.text import pretrain_text

_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh "]


def _documents(seed):
  rng = np.random.default_rng(seed)
  word = lambda: "".join(rng.choice(list("abcdefgh"), rng.integers(1, 6)))
  line = lambda: " ".join(word() for _ in range(rng.integers(2, 9)))
  return [
    "\n".join(line() for _ in range(rng.integers(1, 5))) for _ in range(90)
  ]


def _write_records(path, documents, feature="text"):
  with tf.io.TFRecordWriter(str(path)) as writer:
    for text in documents:
      example = tf.train.Example()
      example.features.feature[feature].bytes_list.value.append(text.encode())
      writer.write(example.SerializeToString())


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("text")
  (folder / "vocab.txt").write_text("\n".join(_WORDS))
  for part in range(3):
    documents = _documents(part)
    (folder / f"part{part}.txt").write_text("\n\n".join(documents) + "\n\n")
    _write_records(folder / f"part{part}.tfrecord", documents)
  return folder


def _params(folder, **changes):
  fields = dict(
    vocab_file_path=str(folder / "vocab.txt"),
    tokenizer="character",
    seq_length=24,
    global_batch_size=4,
    masking_rate=0.2,
    seed=3,
    shuffle_buffer_size=16,
  )
  return pretrain_text.PretrainTextDataConfig(**(fields | changes))


def _batches(params, start_step=0, count=40):
  checks.check_input(params)
  loader = pretrain_text.PretrainTextDataLoader(params)
  batches = loader.load(start_step=start_step).take(count)
  return [
    {name: value.numpy() for name, value in batch.items()} for batch in batches
  ]


def _assert_equal(ours, theirs):
  assert len(ours) == len(theirs) > 0
  for one, other in zip(ours, theirs):
    assert one.keys() == other.keys()
    for name in one:
      np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("is_training", [True, False])
def test_records_give_the_batches_of_the_same_lines(folder, is_training):
  text, records = (
    _batches(
      _params(
        folder,
        # A pattern gives files in the order of the file system.
        input_path=[str(folder / f"part{i}.{ending}") for i in range(3)],
        is_training=is_training,
      )
    )
    for ending in ("txt", "tfrecord")
  )
  _assert_equal(records, text)
  assert len({batch["input_word_ids"].tobytes() for batch in text}) == len(text)


def test_a_set_of_tfds_is_read_by_its_name(folder, monkeypatch):
  paths = [str(folder / "part0.tfrecord"), str(folder / "part1.tfrecord")]

  def builder(name, data_dir):
    if (name, data_dir) != ("small_text", "there"):
      raise ValueError(f"no set {name}")
    splits = {"train": types.SimpleNamespace(filepaths=paths)}
    return types.SimpleNamespace(
      download_and_prepare=lambda: None,
      info=types.SimpleNamespace(splits=splits),
    )

  monkeypatch.setattr(tfds, "builder", builder)
  named = {"tfds_name": "small_text", "tfds_split": "train"}
  ours = _params(folder, **named, tfds_data_dir="there")
  text = [str(folder / f"part{i}.txt") for i in range(2)]
  theirs = _params(folder, input_path=text)
  _assert_equal(_batches(ours), _batches(theirs))
  _assert_equal(_batches(ours, 5, 10), _batches(theirs)[5:15])
  with pytest.raises(errors.UsageError, match="must be one of train"):
    _batches(ours.replace(tfds_split="validation"))
  with pytest.raises(errors.UsageError, match="tfds_name=no_such_text"):
    _batches(ours.replace(tfds_name="no_such_text"))


def test_what_cannot_be_read_is_one_line(folder, tmp_path):
  mixed = f"{folder}/part0.txt,{folder}/part0.tfrecord"
  with pytest.raises(errors.UsageError, match="give one kind only"):
    _batches(_params(folder, input_path=mixed))
  lines = ["abc"] * 20
  _write_records(tmp_path / "other.tfrecord", lines, feature="content")
  other = _params(folder, input_path=str(tmp_path / "other.tfrecord"))
  with pytest.raises(errors.UsageError, match="only in content; set text_feat"):
    _batches(other)
  assert _batches(other.replace(text_feature="content"), count=1)
  (tmp_path / "cut.tfrecord").write_bytes(os.urandom(40))
  with pytest.raises(errors.UsageError, match="cannot read a record"):
    _batches(_params(folder, input_path=str(tmp_path / "cut.tfrecord")))


def test_shards_of_records_are_those_of_the_same_lines(folder, tmp_path):
  vocab = tmp_path / "vocab.txt"
  pieces = [*_WORDS[:5], *"abcdefgh", *map("##{}".format, "abcdefgh")]
  vocab.write_text("\n".join(pieces))
  shards = {}
  for kind in ("txt", "tfrecord"):
    places = {"vocab": str(vocab), "output_dir": str(tmp_path / kind)}
    sizes = {"seq_length": 32, "num_shards": 3, "jobs": 1}
    lines = f"{folder}/part*.{kind}"
    command.run(command.Options(input=lines, **places, **sizes))
    paths = sorted((tmp_path / kind).glob("*.tfrecord"))
    shards[kind] = {path.name: path.read_bytes() for path in paths}
  assert len(shards["txt"]) == 3 and shards["txt"] == shards["tfrecord"]
  with pytest.raises(errors.UsageError, match="either --input or --tfds"):
    command.Options(vocab="v", output_dir="o")
