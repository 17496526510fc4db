"""Builds the dataset of a data config, from any training step on.

Besides Model Garden's masked records: masked examples made while training, with
new masks in every pass. From raw text, which the input pipeline tokenizes and
packs; nothing is written. Or from the shards of `swe prepare pretraining
--fresh_masks`, which are packed already: for texts of many passes, or for hosts
that have no time to tokenize.
"""

from collections.abc import Sequence
import dataclasses
import functools
import os

import tensorflow as tf

from official.common import dataset_fn
from official.core import config_definitions as cfg
from official.nlp.data import data_loader
from official.nlp.data import data_loader_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import library
from swe_tf import messages
from swe_tf.data.prepare import manifest
from swe_tf.data.text import masking
from swe_tf.data.text import packing
from swe_tf.data.text import resumable
from swe_tf.data.text import text_files
from swe_tf.data.text import token_records
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab


@dataclasses.dataclass
class PretrainTextDataConfig(cfg.DataConfig):
  """Data config for masked language modelling on raw text; see docs/data.md.

  The files (UTF-8, plain or .gz) hold documents separated by blank lines, or
  are in WikiText's format. They can also be shards of tokens, whose vocabulary
  lies beside them.
  """

  input_path: str = ""
  global_batch_size: int = 512
  is_training: bool = True
  seq_length: int = 512
  max_predictions_per_seq: int = 0  # seq_length * masking_rate, rounded up.
  use_next_sentence_label: bool = False
  vocab_file_path: str = ""
  tokenizer: str = "wordpiece"  # Or `character`.
  lower_case: bool = True  # And strip accents; characters always are.
  masking: str = "random"  # Or `whole_word`.
  masking_rate: float = 0.15
  shuffle_buffer_size: int = 10000


def folder_of_tokens(params: PretrainTextDataConfig) -> str | None:
  """Returns where the shards of tokens are, if `input_path` names such."""
  if not params.input_path or not text_files.are_records(params.input_path):
    return None
  folders = {os.path.dirname(p) for p in text_files.match(params.input_path)}
  for folder in sorted(folders):
    if not (manifest.load(folder) or {}).get("fresh_masks"):
      raise errors.UsageError(
        f"the records in {folder} are not shards of tokens; give text, or "
        "shards that `swe prepare pretraining` wrote with fresh_masks."
      )
  return min(folders)


@data_loader_factory.register_data_loader_cls(PretrainTextDataConfig)
class PretrainTextDataLoader(data_loader.DataLoader):
  """Loads raw text, with the features of Model Garden's stock loader."""

  def __init__(self, params: PretrainTextDataConfig):
    if params.use_next_sentence_label:
      raise errors.UsageError(
        "`use_next_sentence_label` must be False for raw text, which has no "
        "sentence pairs."
      )
    for field in ("enable_tf_data_service", "cache", "tfds_name"):
      if getattr(params, field):
        raise errors.UsageError(
          f"`{field}` is for the masked TFRecords of swe/bert_pretraining; "
          "unset it."
        )
    self._params = params
    self.folder = folder_of_tokens(params)
    beside = os.path.join(self.folder or "", "vocab.txt")
    path = params.vocab_file_path or (beside if self.folder else "")
    vocabulary = vocab.Vocabulary.load(library.find(path))
    self.tokenizer: tokenizers.Tokenizer = (
      tokenizers.CharacterTokenizer(vocabulary)
      if params.tokenizer == "character"
      else tokenizers.WordPieceTokenizer(vocabulary, params.lower_case)
    )
    self._packer = packing.Packer(self.tokenizer, params.seq_length)
    length, asked = params.seq_length, params.max_predictions_per_seq
    self._masker = masking.Masker(
      self.tokenizer,
      params.masking,
      params.masking_rate,
      manifest.max_predictions(length, params.masking_rate, asked),
    )

  def load(
    self,
    input_context: tf.distribute.InputContext | None = None,
    start_step: int = 0,
  ) -> tf.data.Dataset:
    """Returns one input pipeline's batches from `start_step` on."""
    pipeline = input_context.input_pipeline_id if input_context else 0
    reader = resumable.ResumableInputReader(
      self._params,
      dataset_fn=self._sequences,
      count_fn=manifest.counter() if self.folder else None,
      with_places=True,
      postprocess_fn=functools.partial(self._mask, pipeline),
    )
    return reader.read(input_context, start_step=start_step)

  def sequences(self, paths: Sequence[str]) -> tf.data.Dataset:
    """Returns the packed sequences of files, one after the other."""
    return tf.data.Dataset.from_tensor_slices(paths).flat_map(self._sequences)

  def _sequences(self, path: tf.Tensor) -> tf.data.Dataset:
    """Returns the packed sequences of a file: the same ones in every pass.

    Those of a shard of tokens are still encoded: `_mask` decodes a whole batch
    in the time that a sequence would take.
    """
    if self.folder:
      return tf.data.TFRecordDataset(path)
    lines = text_files.read_lines(path)
    # Packed by chunks: tokenizing line by line takes many times as long.
    chunks = lines.batch(packing.LINES_PER_CHUNK)
    parallel = dict(num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return chunks.map(self._packer.pack, **parallel).unbatch()

  def _mask(self, pipeline: int, places: tf.Tensor, ids: tf.Tensor):
    """Turns a batch of consecutive sequences into the task's features."""
    length = self._params.seq_length
    if self.folder:
      padding = self.tokenizer.vocabulary.id_of("[PAD]")
      ids = token_records.decode(ids, length, padding)
    seed = self._params.seed or 0
    count = tf.shape(ids)[0]
    # The place in the stream seeds the masks: resumed, they are the same,
    # and in every pass they are new.
    draws = masking.draw(seed, pipeline, places[0], count, length)
    features = self._masker.mask(ids, draws)
    features["input_type_ids"] = tf.zeros_like(ids)
    return features


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
  if isinstance(loader, PretrainTextDataLoader):
    return loader.load(input_context, start_step)
  if start_step:
    name = type(loader).__name__
    messages.warn(f"{name} starts at its beginning, not at {start_step}.")
  return loader.load(input_context)
