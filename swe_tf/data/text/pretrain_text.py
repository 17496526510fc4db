"""Masked examples from raw text, made while training.

The input pipeline itself tokenizes, packs and masks text files or documents in
TFRecords (`text_records`), with new masks in every pass; nothing is written.
For corpora that are read many times, `swe prepare pretraining` writes TFRecords
instead.
"""

from collections.abc import Collection
import dataclasses
import functools

import tensorflow as tf

from official.core import config_definitions as cfg
from official.nlp.data import data_loader
from official.nlp.data import data_loader_factory
from swe_tf import errors
from swe_tf import library
from swe_tf.data.text import budget
from swe_tf.data.text import masking
from swe_tf.data.text import next_token
from swe_tf.data.text import packing
from swe_tf.data.text import resumable
from swe_tf.data.text import text_records
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab


@dataclasses.dataclass
class PretrainTextDataConfig(cfg.DataConfig):
  """Data config for language modelling on raw text files.

  The files (UTF-8, plain or .gz) hold documents separated by blank lines, or
  are in WikiText's format. They can also be TFRecords, with `tfrecord` in their
  names and one document per record. `tfds_name` and `tfds_split` name a data
  set of TensorFlow Datasets instead, such as `wiki40b/en`.

  Attributes:
    seq_length: The length of the sequences.
    max_predictions_per_seq: The most predictions in a sequence. 0 stands for
      `seq_length * masking_rate`, rounded up.
    use_next_sentence_label: Must be False: there are no sentence pairs here.
    text_feature: The feature of a record that has the text.
    vocab_file_path: The vocabulary, one token per line.
    tokenizer: `wordpiece`, or `character` with a vocabulary of characters.
    lower_case: Whether WordPiece lower-cases text and strips accents. The
      character tokenizer always lower-cases.
    masking: `random` tokens or `whole_word`; or `next_token`, for a causal
      encoder: nothing is masked, and each token predicts the one after it.
    masking_rate: The fraction of the tokens to predict; `next_token` predicts
      all.
    seed: The seed of the order and of the masks; None stands for the seed of
      the task.
    shuffle_buffer_size: See base class; here it counts sequences.
  """

  input_path: str = ""
  global_batch_size: int = 512
  is_training: bool = True
  seq_length: int = 512
  max_predictions_per_seq: int = 0
  use_next_sentence_label: bool = False
  text_feature: str = "text"
  vocab_file_path: str = ""
  tokenizer: str = "wordpiece"
  lower_case: bool = True
  masking: str = "random"
  masking_rate: float = 0.15
  shuffle_buffer_size: int = 10000


def with_files(params: PretrainTextDataConfig) -> PretrainTextDataConfig:
  """Returns the config with the files of `tfds_name` in place of the name."""
  if not params.tfds_name:
    return params
  paths = text_records.files_of_tfds(
    params.tfds_name, params.tfds_split, params.tfds_data_dir
  )
  return params.replace(tfds_name="", tfds_split="", input_path=paths)


def build_tokenizer(params: PretrainTextDataConfig) -> tokenizers.Tokenizer:
  """Returns the tokenizer that `params` selects."""
  vocabulary = vocab.Vocabulary.load(library.find(params.vocab_file_path))
  if params.tokenizer == "wordpiece":
    return tokenizers.WordPieceTokenizer(vocabulary, params.lower_case)
  if params.tokenizer == "character":
    return tokenizers.CharacterTokenizer(vocabulary)
  raise errors.UsageError(
    f"`tokenizer` ({params.tokenizer!r}) must be wordpiece or character."
  )


@data_loader_factory.register_data_loader_cls(PretrainTextDataConfig)
class PretrainTextDataLoader(data_loader.DataLoader):
  """Loads raw text, with the features of Model Garden's stock loader."""

  def __init__(self, params: PretrainTextDataConfig):
    if params.use_next_sentence_label:
      raise errors.UsageError(
        "`use_next_sentence_label` must be False for raw text: sentence "
        "pairs are made by `swe prepare pretraining` with next_sentence."
      )
    self._params = params = with_files(params)
    self._reads_records = text_records.are_records(params.input_path)
    self.tokenizer = build_tokenizer(params)
    self._packer = packing.Packer(self.tokenizer, params.seq_length)
    self._masker = None
    if params.masking == next_token.MASKING:
      next_token.check(params.seq_length, params.max_predictions_per_seq)
      return
    max_predictions = budget.max_predictions(
      params.seq_length, params.masking_rate, params.max_predictions_per_seq
    )
    self._masker = masking.Masker(
      self.tokenizer, params.masking, params.masking_rate, max_predictions
    )

  def load(
    self,
    input_context: tf.distribute.InputContext | None = None,
    start_step: int = 0,
    bad_files: Collection[str] = (),
  ) -> tf.data.Dataset:
    """Returns one input pipeline's batches from `start_step` on."""
    pipeline = input_context.input_pipeline_id if input_context else 0
    reader = resumable.ResumableInputReader(
      self._params,
      dataset_fn=self._sequences,
      with_places=True,
      bad_files=bad_files,
      postprocess_fn=functools.partial(self._mask, pipeline),
    )
    return reader.read(input_context, start_step=start_step)

  def _sequences(self, path: tf.Tensor) -> tf.data.Dataset:
    """Returns the packed sequences of a file: the same ones in every pass."""
    if self._reads_records:
      lines = text_records.read_lines(path, self._params.text_feature)
    else:
      is_gzip = tf.strings.regex_full_match(path, r".*\.gz")
      lines = tf.data.TextLineDataset(path, tf.where(is_gzip, "GZIP", ""))
    # Packed by chunks: tokenizing line by line takes many times as long.
    chunks = lines.batch(packing.LINES_PER_CHUNK)
    parallel = dict(num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return chunks.map(self._packer.pack, **parallel).unbatch()

  def _mask(self, pipeline: int, places: tf.Tensor, ids: tf.Tensor):
    """Turns a batch of consecutive sequences into the task's features."""
    if self._masker is None:
      padding = self.tokenizer.vocabulary.id_of("[PAD]")
      features = next_token.predict_next(ids, padding)
    else:
      seed, length = self._params.seed or 0, self._params.seq_length
      count = tf.shape(ids)[0]
      # The place in the stream seeds the masks: resumed, they are the same,
      # and in every pass they are new.
      draws = masking.draw(seed, pipeline, places[0], count, length)
      features = self._masker.mask(ids, draws)
    features["input_type_ids"] = tf.zeros_like(ids)
    return features
