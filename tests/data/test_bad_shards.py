"""Which file it was: text, records of any task, and errors of other kinds."""

import gzip

import pytest
import tensorflow as tf

from official.nlp.data import sentence_prediction_dataloader
from swe_tf.data import bad_shards
from swe_tf.data.text import pretrain_text

_LOST = tf.errors.DataLossError(None, None, "inflate() failed")


def _shards(config, *paths):
  params = config(input_path=[str(path) for path in paths])
  return bad_shards.Shards.of("task.train_data", params, "Mend it.")


def test_text_that_is_cut(tmp_path):
  sound, cut = tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"
  for path in (sound, cut):
    path.write_bytes(gzip.compress(b"A line.\n" * 10_000))
  shards = _shards(pretrain_text.PretrainTextDataConfig, sound, cut)
  cut.write_bytes(cut.read_bytes()[:-40])
  with pytest.raises(bad_shards.BadShards) as e, shards.named():
    raise _LOST
  assert list(e.value.reasons) == [str(cut)] and "Mend it." in str(e.value)


def test_records_of_another_task(tmp_path):
  paths = [tmp_path / name for name in ("train.tf_record", "more.tf_record")]
  for path in paths:
    with tf.io.TFRecordWriter(str(path)) as writer:
      for _ in range(3):
        writer.write(b"whatever the task has")
  shards = _shards(
    sentence_prediction_dataloader.SentencePredictionDataConfig, *paths
  )
  with pytest.raises(tf.errors.DataLossError), shards.named():
    raise _LOST  # No file can be blamed.
  paths[1].write_bytes(paths[1].read_bytes()[:-5])
  with pytest.raises(bad_shards.BadShards, match="after 2 good records"):
    with shards.named():
      raise _LOST
  paths[0].unlink()
  with pytest.raises(bad_shards.BadShards) as e, shards.named():
    raise _LOST
  assert "no longer exists" in e.value.reasons[str(paths[0])]
  assert len(e.value.reasons) == 2


def test_memory_that_runs_out_is_not_the_data(tmp_path):
  shards = _shards(pretrain_text.PretrainTextDataConfig, tmp_path / "absent")
  with pytest.raises(tf.errors.ResourceExhaustedError), shards.named():
    raise tf.errors.ResourceExhaustedError(None, None, "out of memory")
