"""Documents in TFRecords, one per record, as in Model Garden's text data.

A record is a `tf.train.Example` with a string feature, `text` by default. The
text sets of TensorFlow Datasets, such as `wiki40b/en`, have such files too.
Documents become lines, with a blank one after each document. This is what a
text file looks like to the rest of the package, so what follows is the same for
both, bit for bit.
"""

from collections.abc import Sequence
import io
import os
from typing import IO

import tensorflow as tf

from swe_tf import errors
from swe_tf.data import tfds_files

_MARK = "tfrecord"


def are_records(paths: str | Sequence[str]) -> bool:
  """Whether paths or patterns are TFRecords: have `tfrecord` in their names.

  Args:
    paths: The paths; several in one string are separated by commas.

  Raises:
    UsageError: If some do and some do not.
  """
  paths = paths.split(",") if isinstance(paths, str) else paths
  kinds = {_MARK in os.path.basename(path) for path in paths}
  if len(kinds) > 1:
    raise errors.UsageError(
      f"input_path ({', '.join(paths)}) has text files and TFRecords; give one "
      "kind only."
    )
  return kinds == {True}


def read_lines(path: tf.Tensor, feature: str) -> tf.data.Dataset:
  """Returns the lines of the documents in a file, a blank one after each."""
  is_gzip = tf.strings.regex_full_match(path, r".*\.gz")
  records = tf.data.TFRecordDataset(path, tf.where(is_gzip, "GZIP", ""))

  def lines(record):
    spec = {feature: tf.io.FixedLenFeature([], tf.string)}
    text = tf.io.parse_single_example(record, spec)[feature]
    return tf.data.Dataset.from_tensor_slices(
      tf.concat([tf.strings.split(text, "\n"), [""]], 0)
    )

  return records.flat_map(lines)


class _Text(io.RawIOBase):
  """The lines of a file's documents, readable like a text file."""

  def __init__(self, path: str, feature: str):
    super().__init__()
    self._lines = read_lines(tf.constant(path), feature).as_numpy_iterator()
    self._rest = b""

  def readable(self) -> bool:
    return True

  def readinto(self, buffer) -> int:
    if not self._rest:
      line = next(self._lines, None)
      self._rest = b"" if line is None else line + b"\n"
    part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
    buffer[: len(part)] = part
    return len(part)


def open_text(path: str, feature: str = "text") -> IO[bytes]:
  """Opens a file of records as a text file with the same lines."""
  check(path, feature)  # The reader itself would raise in the middle.
  return io.BufferedReader(_Text(path, feature), 1 << 20)


def check(path: str, feature: str) -> None:
  """Raises unless the first record of a file has text in the feature."""
  kind = "GZIP" if path.endswith(".gz") else ""
  try:
    record = next(iter(tf.data.TFRecordDataset(path, kind))).numpy()
    found = tf.train.Example.FromString(record).features.feature
  except Exception as error:  # A broken file can raise anything.
    raise errors.UsageError(
      f"cannot read a record of {path}; check that it is a complete TFRecord "
      "file."
    ) from error
  if not found[feature].bytes_list.value:
    raise errors.UsageError(
      f"{path} has no text in a feature {feature!r}, only in "
      f"{', '.join(sorted(n for n in found if n != feature)) or 'none'}; set "
      "text_feature."
    )


def files_of_tfds(name: str, split: str, data_dir: str = "") -> list[str]:
  """Returns the files of a split in TensorFlow Datasets.

  TFDS downloads the data unless it has done so before.

  Args:
    name: The name of the data set, such as `wiki40b/en`.
    split: The name of the split.
    data_dir: Where TFDS keeps its data; empty for its default.

  Raises:
    UsageError: If TFDS cannot provide the data, or has no such split.
  """
  where = {"data_dir": data_dir} if data_dir else {}
  builder = tfds_files.prepare(name, "tfds_name", **where)
  if split not in builder.info.splits:
    raise errors.UsageError(
      f"tfds_split ({split!r}) of {name} must be one of "
      f"{', '.join(builder.info.splits)}."
    )
  return [str(path) for path in builder.info.splits[split].filepaths]
