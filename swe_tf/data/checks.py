"""Can the data of a run be read by its config? Asked once, before any step.

The files exist, text is text, and shards are as the config says.
"""

import functools
import os

from absl import logging
import tensorflow as tf

from official.common import dataset_fn
from official.core import config_definitions as cfg
from official.nlp.data import data_loader_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import manifest
from swe_tf.data.text import pretrain_text
from swe_tf.data.text import text_files


def check_input(
  *configs: cfg.DataConfig, vocab_size: int | None = None
) -> None:
  """Checks that the data of a run exists, is sound and fits the model.

  Configs without `input_path`, with dummy data or of other tasks are skipped.
  """
  known: dict[str, str] = {}  # Where each vocabulary was found.
  for params in configs:
    is_text = isinstance(params, pretrain_text.PretrainTextDataConfig)
    source = params.input_path or (is_text and params.tfds_name)
    if not source or source == "dummy":
      continue
    if is_text:
      known |= _check_text(params, vocab_size)
    elif isinstance(params, pretrain_dataloader.BertPretrainDataConfig):
      known |= _check_shards(params, vocab_size)
  if len(known) > 1:
    first, second, *_ = known.values()
    raise errors.UsageError(
      f"{second} was made with a different vocabulary from {first}; prepare "
      "both with the same one."
    )


def _check_text(params, vocab_size) -> dict[str, str]:
  """Checks the start of each file; returns the input by its vocabulary."""
  # Its constructor checks the values, such as lengths and the tokenizer.
  loader = pretrain_text.PretrainTextDataLoader(params)
  vocabulary = loader.tokenizer.vocabulary
  _check_size(params.vocab_file_path, len(vocabulary), vocab_size)
  params = pretrain_text.with_files(params)
  for path in _match(params):
    if text_files.are_records([path]):
      text_files.check_records(path, params.text_feature)
    else:
      text_files.check(path, text_files.PEEK_BYTES)
  source = params.input_path
  name = source if isinstance(source, str) else ",".join(source)
  return {vocabulary.sha256: name}


def _check_shards(params, vocab_size) -> dict[str, str]:
  """Checks all shards; returns their folders by vocabulary."""
  load = functools.cache(manifest.load)
  known: dict[str, str] = {}
  unknown: set[str] = set()
  for shard in _match(params):
    folder = os.path.dirname(shard)
    found = load(folder)
    if not found:
      if files.as_path(os.path.join(folder, manifest.JOURNAL_NAME)).exists():
        raise errors.UsageError(
          f"the shards in {folder} are not finished; re-run the same `swe "
          "prepare pretraining` to resume."
        )
      # Model Garden's own script writes no manifest.
      if folder not in unknown:
        logging.info("No manifest in %s: only one record is checked.", folder)
        check_record(params, shard, vocab_size)
        unknown.add(folder)
      continue
    known[found["vocab_sha256"]] = folder
    if os.path.basename(shard) not in manifest.shards_of(found):
      raise errors.UsageError(
        f"{shard} is not a shard of its manifest; set input_path to "
        f"{os.path.join(folder, '*.tfrecord')}."
      )
    for name, made in (
      ("seq_length", found["max_seq_length"]),
      ("max_predictions_per_seq", found["max_predictions_per_seq"]),
    ):
      if getattr(params, name) != made:
        raise errors.UsageError(
          f"{name} is {getattr(params, name)}, but {shard} was made with "
          f"{made}; set {name} to {made}, or prepare the text again."
        )
    if params.use_next_sentence_label and not found["next_sentence"]:
      raise errors.UsageError(
        f"{shard} has no sentence pairs; set use_next_sentence_label to false, "
        "or prepare the text again with next_sentence."
      )
    _check_size(shard, found["vocab_size"], vocab_size)
  return known


def _match(params: cfg.DataConfig) -> list[str]:
  """Returns the files of a config; an error names the field."""
  name = "train_data" if params.is_training else "validation_data"
  try:
    return text_files.match(params.input_path)
  except errors.UsageError as error:
    raise errors.UsageError(f"task.{name}.input_path: {error}") from error


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
  _check_size(shard, max(features[ids].int64_list.value) + 1, vocab_size)
