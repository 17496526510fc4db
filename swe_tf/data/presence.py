"""Checks that a run's data files exist and fit. Imports no TensorFlow.

Reads data configs as tables. Once TensorFlow is imported, `checks.py` continues
from here and opens records. It also checks URLs, which are skipped here.
"""

from collections.abc import Mapping, Sequence
import functools
import glob
import os
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.data.prepare import manifest
from swe_tf.data.text import text_files
from swe_tf.data.text import vocab as vocab_lib

Table = Mapping[str, Any]


def check(
  task: Table, vocab_size: int | None = None, needed: Sequence[str] = ()
) -> None:
  """Raises unless the local data of a pre-training task exists and fits.

  Args:
    task: The config of the task.
    vocab_size: The size of the model's vocabulary.
    needed: Which of `train_data` and `validation_data` must be given.

  Raises:
    UsageError: If it does not.
  """
  for name in ("train_data", "validation_data"):
    data = task.get(name) or {}
    place = f"task.{name}"
    if data.get("tfds_name") or data.get("input_path") == "dummy":
      continue
    if data.get("input_path"):
      _check_files(place, data, vocab_size)
    elif name in needed:
      raise errors.UsageError(
        f"{place}.input_path is not set; name the files, for instance by "
        f"--params_override={place}.input_path=DIR/*.tfrecord."
      )


def _check_files(place: str, data: Table, vocab_size: int | None) -> None:
  paths = _local_files(f"{place}.input_path", data["input_path"])
  if "vocab_file_path" not in data:
    load = functools.cache(manifest.load)
    for path in paths:
      check_shard(data, path, load(os.path.dirname(path)), vocab_size)
    return
  try:
    vocabulary = vocab_lib.Vocabulary.load(
      library.find(data["vocab_file_path"] or "")
    )
  except errors.UsageError as error:
    raise errors.UsageError(f"{place}.vocab_file_path: {error}") from error
  check_size(data["vocab_file_path"], len(vocabulary), vocab_size)
  for path in paths:
    if "tfrecord" not in os.path.basename(path):
      text_files.check(path, text_files.PEEK_BYTES)


def _local_files(place: str, source: Any) -> list[str]:
  if isinstance(source, Mapping):
    return []  # A mixture by name; Model Garden reads it.
  sources = source if isinstance(source, (list, tuple)) else [source]
  if not all(isinstance(each, str) for each in sources):
    raise errors.UsageError(
      f"{place} ({source!r}) must be paths or patterns, in quotes."
    )
  patterns = [p.strip() for each in sources for p in each.split(",")]
  paths = []
  for pattern in filter(None, patterns):
    if files.is_url(pattern):
      continue
    found = glob.glob(pattern) if "*" in pattern else [pattern]
    found = [path for path in found if os.path.isfile(path)]
    if not found:
      raise errors.UsageError(f"{place}: {pattern} does not match any files.")
    paths += found
  return paths


def check_size(
  source: files.PathLike, size: int, vocab_size: int | None
) -> None:
  """Raises unless a model with `vocab_size` tokens has room for `size`."""
  if vocab_size is not None and size > vocab_size:
    raise errors.UsageError(
      f"{source} has a vocabulary of {size} tokens, but the model has room "
      f"for {vocab_size}; set the encoder's vocab_size to {size}, or use the "
      "model's vocabulary."
    )


def check_shard(
  data: Table, shard: str, found: Table | None, vocab_size: int | None
) -> None:
  """Raises if a shard is unfinished or was made with different settings.

  Args:
    data: The data config.
    shard: The path of the shard.
    found: The manifest beside it, or None if there is none.
    vocab_size: The size of the model's vocabulary.
  """
  folder = os.path.dirname(shard)
  if not found:
    if files.as_path(os.path.join(folder, manifest.JOURNAL_NAME)).exists():
      raise errors.UsageError(
        f"the shards in {folder} are not finished; re-run the same `swe "
        "prepare pretraining` to resume."
      )
    return
  if os.path.basename(shard) not in manifest.shards_of(found):
    raise errors.UsageError(
      f"{shard} is not a shard of its manifest; set input_path to "
      f"{os.path.join(folder, '*.tfrecord')}."
    )
  for name, made in (
    ("seq_length", found["max_seq_length"]),
    ("max_predictions_per_seq", found["max_predictions_per_seq"]),
  ):
    if data[name] != made:
      raise errors.UsageError(
        f"{name} is {data[name]}, but {shard} was made with {made}; "
        f"set {name} to {made}, or prepare the text again."
      )
  if data["use_next_sentence_label"] and not found["next_sentence"]:
    raise errors.UsageError(
      f"{shard} has no sentence pairs; set use_next_sentence_label to false, "
      "or prepare the text again with --next_sentence."
    )
  check_size(shard, found["vocab_size"], vocab_size)
