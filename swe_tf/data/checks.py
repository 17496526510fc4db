"""Checks the input of a run before the first step.

Every error is one line that says what to do. Nothing is written.
"""

import functools
import os

from absl import logging
import tensorflow as tf

from official.common import dataset_fn
from official.core import config_definitions as cfg
from official.core import input_reader
from official.nlp.data import data_loader_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf.data import presence
from swe_tf.data.prepare import manifest
from swe_tf.data.text import pretrain_text
from swe_tf.data.text import text_files
from swe_tf.data.text import text_records


def check_input(
  *configs: cfg.DataConfig, vocab_size: int | None = None
) -> None:
  """Checks that the data of a run exists, is sound and fits the model.

  Configs without `input_path`, with dummy data or of other tasks are skipped.

  Args:
    *configs: The data configs, for instance of training and of validation.
    vocab_size: The size of the model's vocabulary.
  """
  digests: dict[str, str] = {}  # Where each vocabulary was found.
  for params in configs:
    is_text = isinstance(params, pretrain_text.PretrainTextDataConfig)
    source = params.input_path or (is_text and params.tfds_name)
    if not source or source == "dummy":
      continue
    if is_text:
      digests |= _check_text(params, vocab_size)
    elif isinstance(params, pretrain_dataloader.BertPretrainDataConfig):
      digests |= _check_shards(params, vocab_size)
  if len(digests) > 1:
    first, second, *_ = digests.values()
    raise errors.UsageError(
      f"{second} was made with a different vocabulary from {first}; prepare "
      "both with the same one."
    )


def _check_text(params, vocab_size) -> dict[str, str]:
  """Checks the start of each file; returns the input by its vocabulary."""
  loader = pretrain_text.PretrainTextDataLoader(params)
  vocabulary = loader.tokenizer.vocabulary
  presence.check_size(params.vocab_file_path, len(vocabulary), vocab_size)
  params = pretrain_text.with_files(params)
  is_records = pretrain_text.reads_records(params)
  for path in _matched(params):
    if is_records:
      text_records.check(path, params.text_feature)
    else:
      text_files.check(path, text_files.PEEK_BYTES)
  source = params.input_path
  name = source if isinstance(source, str) else ",".join(source)
  return {vocabulary.sha256: name}


def _check_shards(params, vocab_size) -> dict[str, str]:
  """Checks all shards; returns their folders by vocabulary.

  Shards without a manifest, as Model Garden's own script makes them, are
  accepted if the first record of their folder fits.
  """
  folders = {}
  load = functools.cache(manifest.load)
  unknown = set()
  table = params.as_dict()
  for shard in _matched(params):
    folder = os.path.dirname(shard)
    found = load(folder)
    presence.check_shard(table, shard, found, vocab_size)
    if found:
      folders[found["vocab_sha256"]] = folder
    elif folder not in unknown:
      logging.info("No manifest in %s: only one record is checked.", folder)
      check_record(params, shard, vocab_size)
      unknown.add(folder)
  return folders


def _matched(params):
  """Returns the files of a config; raises if one does not exist."""
  try:
    paths = input_reader.match_files(params.input_path)
  except ValueError as error:
    raise errors.UsageError(f"input_path: {error}") from error
  for path in paths:
    if not tf.io.gfile.exists(path):
      raise errors.UsageError(f"{path} is not there; check input_path.")
  return paths


def check_parses(params: cfg.DataConfig, path: str) -> None:
  """Raises if the first record of a file is not what `params` says."""
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
    record = next(iter(records)).numpy()
    features = tf.train.Example.FromString(record).features.feature
  except Exception as error:  # A broken file can raise anything.
    raise errors.UsageError(
      f"cannot read a record of {shard}; check file_type ({params.file_type}), "
      "and that the file is complete."
    ) from error
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
  presence.check_size(
    shard, max(features[ids].int64_list.value) + 1, vocab_size
  )
