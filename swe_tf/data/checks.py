"""Can the data of a run be read by its config? Asked once, before any step.

The files exist, text is text and known to the vocabulary, shards are as the
config and their manifest say, and there is enough for a batch.
"""

import os
from typing import Any

from absl import logging
import numpy as np
import tensorflow as tf

from official.common import dataset_fn
from official.core import config_definitions as cfg
from official.core import input_reader
from official.nlp.data import data_loader_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import files
from swe_tf.data import loaders
from swe_tf.data.prepare import manifest
from swe_tf.data.text import coverage
from swe_tf.data.text import text_files

_SAMPLE = 16  # Records of a shard.


def check_input(
  *configs: cfg.DataConfig, vocab_size: int | None = None
) -> list[str]:
  """Checks that the data of a run exists, is sound and fits the model.

  Configs without `input_path`, with dummy data or of other tasks are skipped.

  Returns:
    Warnings: what can be trained on, but is hardly meant.
  """
  known: dict[str, str] = {}  # Where each vocabulary was found,
  masked: dict[str, str] = {}  # and each way to mask.
  warnings: list[str] = []
  trained_on: set[str] = set()
  for params in configs:
    is_text = isinstance(params, loaders.PretrainTextDataConfig)
    if not params.input_path or params.input_path == "dummy":
      continue
    name = "train_data" if params.is_training else "validation_data"
    paths: list[str] = []
    ways: dict[str, Any] = {}
    with errors.part():
      if is_text:
        paths = _match(params, name)
        found, said = _check_text(params, paths, vocab_size)
        known |= found
        ways = {f"task.{name}": params.as_dict()}
        warnings += [f"task.{name}: {warning}" for warning in said]
      elif isinstance(params, pretrain_dataloader.BertPretrainDataConfig):
        paths = _match(params, name)
        ways = _check_shards(params, paths, vocab_size)
        known |= {way["vocab_sha256"]: source for source, way in ways.items()}
    for source, way in ways.items():
      text = f"masking={way['masking']}, masking_rate={way['masking_rate']}"
      masked.setdefault(text, source)
    real = {p if files.is_url(p) else os.path.realpath(p) for p in paths}
    if params.is_training:
      trained_on |= real
    elif shared := sorted(real & trained_on):
      warnings.append(
        f"{len(shared)} of the {len(real)} files of task.{name} are also "
        f"trained on, such as {shared[0]}: its loss says little."
      )
  if len(masked) > 1:
    (one, first), (other, second), *_ = masked.items()
    warnings.append(
      f"{second} has {other}, but {first} has {one}: their losses cannot be "
      "compared; mask both alike."
    )
  if len(known) > 1:
    first, second, *_ = known.values()
    raise errors.UsageError(
      f"{second} was made with a different vocabulary from {first}; prepare "
      "both with the same one."
    )
  return warnings


def check_exists(*configs: cfg.DataConfig) -> None:
  """Raises unless some data is given and its files exist. Runs no op."""
  if not any(each.input_path or each.tfds_name for each in configs):
    raise errors.UsageError(
      "task.train_data.input_path is not set; name the files."
    )
  for params in configs:
    if params.input_path and params.input_path != "dummy":
      _match(params, "train_data" if params.is_training else "validation_data")


def _check_text(params, paths, vocab_size) -> tuple[dict[str, str], list[str]]:
  """Checks the start of each file.

  Returns the input by its vocabulary, and warnings.
  """
  # Its constructor checks the values, such as lengths and the tokenizer.
  loader = loaders.PretrainTextDataLoader(params)
  vocabulary = loader.tokenizer.vocabulary
  _check_size(params.vocab_file_path, len(vocabulary), vocab_size)
  if loader.folder:
    found = _check_shards(params, paths, vocab_size)
    known = {each["vocab_sha256"]: folder for folder, each in found.items()}
    return known | {vocabulary.sha256: params.vocab_file_path}, []
  for path in paths:
    text_files.check(path, text_files.PEEK_BYTES)
  source = params.input_path
  name = source if isinstance(source, str) else ",".join(source)
  warnings = coverage.check_files(loader.tokenizer, paths)
  _check_batch(params, loader.sequences(paths))
  return {vocabulary.sha256: name}, warnings


def _check_batch(params: cfg.DataConfig, examples: tf.data.Dataset) -> None:
  """Raises unless there is a batch of examples, of which none would be made."""
  batch = params.global_batch_size
  name = "train_data" if params.is_training else "validation_data"
  if not (params.is_training or params.drop_remainder):
    batch = 1
  count = int(examples.take(batch).reduce(np.int64(0), lambda n, _: n + 1))
  if count < batch:
    raise errors.UsageError(
      f"task.{name} has {count} example(s), which is less than a batch; lower "
      f"task.{name}.global_batch_size ({params.global_batch_size})."
    )


def _check_shards(params, paths, vocab_size) -> dict[str, dict[str, Any]]:
  """Checks all shards; returns the manifests of their folders."""
  manifests = {}
  for folder in sorted(set(map(os.path.dirname, paths))):
    shards = [path for path in paths if os.path.dirname(path) == folder]
    found = manifest.load(folder)
    if found:
      with errors.part():
        _check_prepared(params, folder, found, shards)
      with errors.part():
        _check_size(folder, found["vocab_size"], vocab_size)
      manifests[folder] = found
      continue
    if files.as_path(os.path.join(folder, manifest.JOURNAL_NAME)).exists():
      raise errors.UsageError(
        f"the shards in {folder} are not finished; re-run the same `swe "
        "prepare pretraining` to resume."
      )
    # Model Garden's own script writes no manifest.
    logging.info("No manifest in %s: only one record is checked.", folder)
    check_record(params, shards[0], vocab_size)
  kind = getattr(params, "file_type", "tfrecord")
  _check_batch(params, dataset_fn.pick_dataset_fn(kind)(paths))
  return manifests


def _check_prepared(params, folder, found, shards) -> None:
  """Raises unless shards are as their manifest and the config say."""
  listed = manifest.shards_of(found)
  for shard in shards:
    if os.path.basename(shard) not in listed:
      raise errors.UsageError(
        f"{shard} is not a shard of its manifest; set input_path to "
        f"{os.path.join(folder, '*.tfrecord')}."
      )
  missing = manifest.missing_shards(folder, found)
  if missing:
    raise errors.UsageError(
      f"{folder} lacks {len(missing)} of the {len(listed)} shards of its "
      f"manifest, such as {missing[0]}; re-run the same `swe prepare "
      "pretraining` to make them again."
    )
  made_with = {"seq_length": found["max_seq_length"]}
  if not isinstance(params, loaders.PretrainTextDataConfig):
    if found["fresh_masks"]:
      raise errors.UsageError(
        f"the shards in {folder} have no masks (fresh_masks); train with the "
        "experiment swe/bert_pretraining_text, which draws them."
      )
    made_with["max_predictions_per_seq"] = found["max_predictions_per_seq"]
  for name, made in made_with.items():
    if getattr(params, name) != made:
      errors.fault(
        f"{name} is {getattr(params, name)}, but {folder} was made with "
        f"{made}; set {name} to {made}, or prepare the text again."
      )
  if params.use_next_sentence_label:
    errors.fault(
      f"{folder} has no sentence pairs; set use_next_sentence_label to false."
    )
  for shard in shards:
    manifest.check_unchanged(listed[os.path.basename(shard)], shard)


def _match(params: cfg.DataConfig, name: str) -> list[str]:
  """Returns the files of a config; an error names the field."""
  try:
    found = text_files.match(params.input_path)
  except errors.UsageError as error:
    raise errors.UsageError(f"task.{name}.input_path: {error}") from error
  # Model Garden's reader knows * and ?, but no brackets.
  for path in set(input_reader.match_files(params.input_path)) - set(found):
    raise errors.UsageError(
      f"task.{name}.input_path: {path} is not a file; use only * and ? in "
      "patterns, and match only files."
    )
  return found


def _check_size(source: str, size: int, vocab_size: int | None) -> None:
  if vocab_size is not None and size > vocab_size:
    raise errors.UsageError(
      f"{source} has a vocabulary of {size} tokens, but the model has room "
      f"for {vocab_size}; set the encoder's vocab_size to {size}, or use the "
      "model's vocabulary."
    )


def check_parses(params: cfg.DataConfig, path: str) -> None:
  """Raises if the first record of a file is not what a `DataConfig` says."""
  loader = data_loader_factory.get_data_loader(params)
  try:
    loader._decode(next(iter(tf.data.TFRecordDataset(path))))
  except Exception as error:  # Whatever a broken file raises.
    raise errors.UsageError(
      f"cannot read a record of {path} with seq_length {params.seq_length}; "
      "prepare the data again."
    ) from error


def check_record(
  params: pretrain_dataloader.BertPretrainDataConfig,
  shard: str,
  vocab_size: int | None,
) -> None:
  """Raises if the first record of a shard does not fit `params`."""
  try:
    records = dataset_fn.pick_dataset_fn(params.file_type)(shard)
    some = [
      tf.train.Example.FromString(record.numpy()).features.feature
      for record in records.take(_SAMPLE)
    ]
    features = some[0]
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
  if not any(sum(f["masked_lm_weights"].float_list.value) for f in some):
    raise errors.UsageError(
      f"{shard} has no token to predict in its first {len(some)} records; "
      "prepare the text again with its own vocabulary."
    )
  ids = "input_word_ids" if params.use_v2_feature_names else "input_ids"
  _check_size(shard, max(features[ids].int64_list.value) + 1, vocab_size)
