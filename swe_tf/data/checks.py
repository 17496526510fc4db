"""Can the data of a run be read by its config? Asked once, before any step.

The files exist, text is text, and shards have the lengths, the predictions and
the vocabulary that the config says. Reads data configs as tables and imports
TensorFlow only to open records, so that a wrong path is reported at once.
Every error is one line that says what to do. Nothing is written.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import functools
import os
from typing import Any

from absl import logging

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.data.prepare import manifest
from swe_tf.data.text import text_files
from swe_tf.data.text import vocab as vocab_lib

Table = Mapping[str, Any]


def check_input(*configs: Any, vocab_size: int | None = None) -> None:
  """Checks that the data of a run exists, is sound and fits the model.

  Args:
    *configs: The `DataConfig`s of training and of validation. Those without
      `input_path`, with dummy data or of other tasks are skipped.
    vocab_size: The size of the model's vocabulary.
  """
  from official.nlp.data import pretrain_dataloader
  from swe_tf.data.text import pretrain_text

  known: dict[str, str] = {}  # Where each vocabulary was found.
  for params in configs:
    is_text = isinstance(params, pretrain_text.PretrainTextDataConfig)
    source = params.input_path or (is_text and params.tfds_name)
    if not source or source == "dummy":
      continue
    if is_text:
      # Its constructor checks the values, such as lengths and the tokenizer.
      pretrain_text.PretrainTextDataLoader(params)
      params = pretrain_text.with_files(params)
    elif not isinstance(params, pretrain_dataloader.BertPretrainDataConfig):
      continue
    name = "train_data" if params.is_training else "validation_data"
    data = params.as_dict()
    if not isinstance(data["input_path"], Mapping):  # Model Garden's mixture.
      known |= _check_files(f"task.{name}", params, data, vocab_size)
  if len(known) > 1:
    first, second, *_ = known.values()
    raise errors.UsageError(
      f"{second} was made with a different vocabulary from {first}; prepare "
      "both with the same one."
    )


def check_tables(
  task: Table, vocab_size: int | None = None, needed: Sequence[str] = ()
) -> None:
  """Checks what can be checked of a pre-training task without TensorFlow.

  Args:
    task: The config of the task.
    vocab_size: The size of the model's vocabulary.
    needed: Which of `train_data` and `validation_data` must be given.
  """
  for name in ("train_data", "validation_data"):
    data = task.get(name) or {}
    source = data.get("input_path")
    if data.get("tfds_name") or source == "dummy":
      continue
    if source and not isinstance(source, Mapping):  # Model Garden's mixture.
      _check_files(f"task.{name}", None, data, vocab_size)
    elif not source and name in needed:
      raise errors.UsageError(
        f"task.{name}.input_path is not set; name the files, such as "
        "DIR/*.tfrecord."
      )


def _check_files(
  place: str, params: Any, data: Table, vocab_size: int | None
) -> dict[str, str]:
  """Checks the files of one data config.

  Args:
    place: The config's name, for errors.
    params: The `DataConfig`; None to open no records and no URLs.
    data: The same as a table.
    vocab_size: The size of the model's vocabulary.

  Returns:
    Where each vocabulary was found, by its digest.
  """
  source = data["input_path"]
  listed = [source] if isinstance(source, str) else source
  if not all(isinstance(each, str) for each in listed):
    raise errors.UsageError(
      f"{place}.input_path ({source!r}) must be paths or patterns, in quotes."
    )
  with _named(f"{place}.input_path"):
    paths = text_files.match(listed, urls=params is not None)
  if "vocab_file_path" not in data:
    return _check_shards(params, data, paths, vocab_size)
  with _named(f"{place}.vocab_file_path"):
    vocabulary = vocab_lib.Vocabulary.load(
      library.find(data["vocab_file_path"] or "")
    )
  check_size(data["vocab_file_path"], len(vocabulary), vocab_size)
  for path in paths:
    if "tfrecord" not in os.path.basename(path):
      text_files.check(path, text_files.PEEK_BYTES)
    elif params is not None:
      from swe_tf.data.text import text_records

      text_records.check(path, params.text_feature)
  return {vocabulary.sha256: ",".join(listed)}


def _check_shards(
  params: Any, data: Table, paths: Sequence[str], vocab_size: int | None
) -> dict[str, str]:
  """Checks all shards against the manifests beside them; see `_check_files`.

  Shards without a manifest, as Model Garden's own script makes them, are
  accepted if the first record of their folder fits.
  """
  load = functools.cache(manifest.load)
  known: dict[str, str] = {}
  unknown: set[str] = set()
  for shard in paths:
    folder = os.path.dirname(shard)
    found = load(folder)
    if found:
      _check_shard(data, shard, found, vocab_size)
      known[found["vocab_sha256"]] = folder
    elif folder in unknown:
      continue
    elif files.as_path(os.path.join(folder, manifest.JOURNAL_NAME)).exists():
      raise errors.UsageError(
        f"the shards in {folder} are not finished; re-run the same `swe "
        "prepare pretraining` to resume."
      )
    elif params is not None:
      logging.info("No manifest in %s: only one record is checked.", folder)
      check_record(params, shard, vocab_size)
      unknown.add(folder)
  return known


def _check_shard(
  data: Table, shard: str, found: Table, vocab_size: int | None
) -> None:
  """Raises if a shard is not as its manifest and the config say."""
  if os.path.basename(shard) not in manifest.shards_of(found):
    raise errors.UsageError(
      f"{shard} is not a shard of its manifest; set input_path to "
      f"{os.path.join(os.path.dirname(shard), '*.tfrecord')}."
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
      "or prepare the text again with next_sentence."
    )
  check_size(shard, found["vocab_size"], vocab_size)


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


@contextlib.contextmanager
def _named(place: str) -> Iterator[None]:
  """Puts the name of a field before the errors of the block."""
  try:
    yield
  except errors.UsageError as error:
    raise errors.UsageError(f"{place}: {error}") from error


def check_parses(params: Any, path: str) -> None:
  """Raises if the first record of a file is not what a `DataConfig` says."""
  import tensorflow as tf

  from official.nlp.data import data_loader_factory

  loader = data_loader_factory.get_data_loader(params)
  try:
    loader._decode(next(iter(tf.data.TFRecordDataset(path))))
  except Exception as error:  # Whatever a broken file raises.
    raise errors.UsageError(
      f"cannot read a record of {path} with seq_length {params.seq_length}; "
      "prepare the data again."
    ) from error


def check_record(params: Any, shard: str, vocab_size: int | None) -> None:
  """Raises if a shard's first record is not what `params` says.

  Args:
    params: A `BertPretrainDataConfig`.
    shard: The file.
    vocab_size: The size of the model's vocabulary.
  """
  import tensorflow as tf

  from official.common import dataset_fn
  from official.nlp.data import pretrain_dataloader

  try:
    records = dataset_fn.pick_dataset_fn(params.file_type)(shard)
    record = next(iter(records)).numpy()
    features = tf.train.Example.FromString(record).features.feature
  except Exception as error:  # A broken file can raise anything.
    raise errors.UsageError(
      f"cannot read a record of {shard}; check file_type ({params.file_type}), "
      "and that the file is complete."
    ) from error
  # The parser would fail with a stack trace that names neither file nor field.
  loader = pretrain_dataloader.BertPretrainDataLoader(params)
  for name, spec in loader._name_to_features().items():
    feature = features[name]
    size = len(feature.int64_list.value) + len(feature.float_list.value)
    if size != spec.shape[0]:
      raise errors.UsageError(
        f"{shard} has {size} values of {name}, but the config says "
        f"{spec.shape[0]}; set seq_length, max_predictions_per_seq, "
        "use_next_sentence_label and use_v2_feature_names as the shards "
        "were made."
      )
  ids = "input_word_ids" if params.use_v2_feature_names else "input_ids"
  check_size(shard, max(features[ids].int64_list.value) + 1, vocab_size)
