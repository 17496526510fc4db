"""A block that is read alone is the one that is read among the others."""

import gzip

import numpy as np
import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf.data.text import text_files

_CONTENT = {
  "a.txt": "one\n\ntwo two two\nthree\n",
  "b.txt": "no newline at the end, and longer than several blocks " * 3,
  "c.txt": "\n\nx\n\n",
  "d.txt": "é è ü\nñ\n" * 5,
}


def _write(folder, kind):
  """Writes the files in one of the formats and returns them, checked."""
  for name, content in _CONTENT.items():
    if kind == "gz":
      with gzip.open(folder / f"{name}.gz", "wb") as f:
        f.write(content.encode())
    elif kind == "tfrecord":
      feature = tf.train.Feature(
        bytes_list=tf.train.BytesList(value=[content.encode()])
      )
      example = tf.train.Example(
        features=tf.train.Features(feature={"text": feature})
      )
      with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as writer:
        writer.write(example.SerializeToString())
    else:
      (folder / name).write_bytes(content.encode())
  return [text_files.check(path) for path in text_files.match(f"{folder}/*")]


@pytest.mark.parametrize("kind", ["txt", "gz", "tfrecord"])
def test_one_block_equals_that_of_all(tmp_path, kind):
  texts = _write(tmp_path, kind)
  size = sum(text.size for text in texts)
  more = (3, 20, size, size + 3)  # Opening records takes long.
  for count in (1, 2, 7, *(() if kind == "tfrecord" else more)):
    blocks = list(text_files.read_blocks(texts, count))
    alone = [text_files.read_block(texts, count, i) for i in range(count)]
    assert alone == blocks, count


def test_random_texts(tmp_path):
  rng = np.random.default_rng(0)
  for trial in range(50):
    folder = tmp_path / str(trial)
    folder.mkdir()
    for name in "abc"[: rng.integers(1, 4)]:
      letters = rng.choice(list("x\n"), rng.integers(1, 12))
      (folder / name).write_text("x" + "".join(letters))
    texts = [text_files.check(path) for path in text_files.match(f"{folder}/*")]
    count = int(rng.integers(1, 15))
    assert list(text_files.read_blocks(texts, count)) == [
      text_files.read_block(texts, count, i) for i in range(count)
    ]


def test_a_file_that_became_shorter_is_told(tmp_path):
  (tmp_path / "a.txt").write_text("one\ntwo\n")
  texts = [text_files.check(str(tmp_path / "a.txt"))]
  (tmp_path / "a.txt").write_text("one\n")
  with pytest.raises(errors.UsageError, match="became shorter"):
    text_files.read_block(texts, 1, 0)
