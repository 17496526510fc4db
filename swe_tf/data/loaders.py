"""Builds the dataset of a data config, from any training step on."""

import tensorflow as tf

from official.common import dataset_fn
from official.core import config_definitions as cfg
from official.nlp.data import data_loader_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import messages
from swe_tf.data.prepare import manifest
from swe_tf.data.text import pretrain_text
from swe_tf.data.text import resumable


class ResumablePretrainDataLoader(pretrain_dataloader.BertPretrainDataLoader):
  """Model Garden's loader of masked TFRecords, with a `start_step`."""

  def load(
    self,
    input_context: tf.distribute.InputContext | None = None,
    start_step: int = 0,
  ) -> tf.data.Dataset:
    reader = resumable.ResumableInputReader(
      self._params,
      dataset_fn=dataset_fn.pick_dataset_fn(self._params.file_type),
      count_fn=manifest.counter(),
      decoder_fn=self._decode,
      parser_fn=self._parse,
    )
    return reader.read(input_context, start_step=start_step)


def build_dataset(
  params: cfg.DataConfig,
  input_context: tf.distribute.InputContext | None = None,
  start_step: int = 0,
) -> tf.data.Dataset:
  """Returns the per-replica batches that a run sees from `start_step` on.

  Data that is neither raw text nor Model Garden's masked records is loaded by
  its registered loader and starts from the beginning.
  """
  # Its registered loader is Model Garden's, which cannot start in the middle.
  if type(params) is pretrain_dataloader.BertPretrainDataConfig:  # pylint: disable=unidiomatic-typecheck
    return ResumablePretrainDataLoader(params).load(input_context, start_step)
  loader = data_loader_factory.get_data_loader(params)
  if isinstance(loader, pretrain_text.PretrainTextDataLoader):
    return loader.load(input_context, start_step)
  if start_step:
    name = type(loader).__name__
    messages.warn(f"{name} starts at its beginning, not at {start_step}.")
  return loader.load(input_context)
