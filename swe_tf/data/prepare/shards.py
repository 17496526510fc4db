"""Turns a block of text into a shard of masked examples.

This is what one worker of `swe prepare pretraining` does. A shard is a pure
function of its text, its number and the settings, whatever process makes it.
"""

from collections.abc import Iterator, Mapping
import os

import numpy as np
import tensorflow as tf

from swe_tf import files
from swe_tf.data.prepare import manifest
from swe_tf.data.text import budget
from swe_tf.data.text import masking
from swe_tf.data.text import next_sentence
from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib

_TOKENS_PER_BATCH = 1 << 17


class ShardWriter:
  """Writes shards. It builds graphs, so use one writer for many shards."""

  def __init__(
    self,
    settings: manifest.Settings,
    vocabulary: vocab_lib.Vocabulary,
    output_dir: str,
  ):
    tokenizer = tokenizers.WordPieceTokenizer(vocabulary, settings.lower_case)
    packer = packing.Packer(tokenizer, settings.seq_length)
    self._settings = settings
    self._vocabulary = vocabulary
    self._output_dir = output_dir
    self._masker = masking.Masker(
      tokenizer,
      settings.masking,
      settings.masking_rate,
      budget.max_predictions(
        settings.seq_length,
        settings.masking_rate,
        settings.max_predictions_per_seq,
      ),
    )
    # Chunks and batches vary in size: without signatures, each would retrace.
    lines = tf.TensorSpec([None], tf.string)
    number = tf.TensorSpec([], tf.int64)
    sequences = tf.TensorSpec([None, settings.seq_length], tf.int32)
    labels = tf.TensorSpec([None, 1], tf.int32)
    self._pack = tf.function(packer.pack, input_signature=[lines])
    self._pack_documents = tf.function(
      lambda lines: packer.pack_documents(lines, settings.seq_length - 3),
      input_signature=[lines],
    )
    self._to_records = tf.function(
      self._mask_and_serialize,
      input_signature=[number, number, sequences, sequences, labels],
    )
    # Traced now, so that the first shard takes no longer than the others.
    pack = self._pack_documents if settings.next_sentence else self._pack
    pack.get_concrete_function()
    self._to_records.get_concrete_function()

  def write(self, index: int, text: bytes) -> dict[str, int]:
    """Writes a shard, complete or not at all.

    Args:
      index: The number of the shard; with the seed, it seeds the randomness.
      text: The lines of the shard.

    Returns:
      Its numbers of `examples`, `tokens` and `predictions`.
    """
    # By shard, so that the bytes do not depend on which process writes it.
    rng = np.random.default_rng([self._settings.seed, index])
    make = self._pairs if self._settings.next_sentence else self._sequences
    columns = make(text.split(b"\n"), rng)
    # Neighbours in the text must not be neighbours in a batch.
    copies = np.tile(np.arange(len(columns[0])), self._settings.dupe_factor)
    order = rng.permutation(copies)
    ids, types, labels = (column[order] for column in columns)
    batch_size = -(-_TOKENS_PER_BATCH // self._settings.seq_length)
    counts = {"examples": len(ids), "tokens": 0, "predictions": 0}
    path = os.path.join(self._output_dir, self._settings.shard_name(index))
    with (
      files.complete_or_absent(path) as scratch,
      tf.io.TFRecordWriter(scratch) as writer,
    ):
      for start in range(0, len(ids), batch_size):
        batch = slice(start, start + batch_size)
        records, tokens, predictions = self._to_records(
          index, start, ids[batch], types[batch], labels[batch]
        )
        for record in records.numpy():
          writer.write(record)
        counts["tokens"] += int(tokens)
        counts["predictions"] += int(predictions)
    return counts

  def _sequences(self, lines: list[bytes], rng: np.random.Generator):
    """Returns packed sequences; their types and labels are all 0."""
    del rng
    ids = np.concatenate([self._pack(chunk) for chunk in _chunks(lines)])
    return ids, np.zeros_like(ids), np.zeros([len(ids), 1], np.int32)

  def _pairs(self, lines: list[bytes], rng: np.random.Generator):
    """Returns sentence pairs with their types and labels."""
    sequences, documents = [], []
    for number, chunk in enumerate(_chunks(lines)):
      chunk_sequences, chunk_documents = self._pack_documents(chunk)
      sequences.extend(chunk_sequences.to_list())
      # A chunk has at most as many documents as lines, so none is counted
      # twice.
      documents.extend(
        chunk_documents.numpy() + number * packing.LINES_PER_CHUNK
      )
    return next_sentence.make_pairs(
      sequences, documents, self._settings.seq_length, self._vocabulary, rng
    )

  def _mask_and_serialize(self, shard, first, ids, types, labels):
    """Returns a batch's records and its numbers of tokens and predictions."""
    count, length = tf.shape(ids)[0], self._settings.seq_length
    draws = masking.draw(self._settings.seed, shard, first, count, length)
    features = self._masker.mask(ids, draws)
    # The names that Model Garden's loader expects by default.
    features["input_ids"] = features.pop("input_word_ids")
    # Without pairs these are 0, and a single row is serialized for all.
    rows = slice(None if self._settings.next_sentence else 1)
    features["segment_ids"] = types[rows]
    features["next_sentence_labels"] = labels[rows]
    return (
      _serialize(features, count),
      tf.reduce_sum(features["input_mask"]),
      tf.reduce_sum(features["masked_lm_weights"]),
    )


def _chunks(lines: list[bytes]) -> Iterator[tf.Tensor]:
  for start in range(0, len(lines), packing.LINES_PER_CHUNK):
    yield tf.constant(lines[start : start + packing.LINES_PER_CHUNK])


def _serialize(
  features: Mapping[str, tf.Tensor], count: tf.Tensor
) -> tf.Tensor:
  """Returns a serialized `tf.train.Example` for every row of the features.

  This runs in the graph: a Python loop over `tf.train.Example` takes as long as
  everything else together.

  Args:
    features: Tensors `[count, size]`, or `[1, size]` for all rows, by name.
    count: The number of rows.
  """
  entries = []
  for name, values in sorted(features.items()):
    if values.dtype.is_integer:
      values = _encode("Int64List", value=tf.cast(values, tf.int64))
      feature = _encode("Feature", int64_list=values[:, tf.newaxis])
    else:
      values = _encode("FloatList", value=values)
      feature = _encode("Feature", float_list=values[:, tf.newaxis])
    entry = _encode(
      "Features.FeatureEntry",
      key=tf.fill([tf.size(feature), 1], name),
      value=feature[:, tf.newaxis],
    )
    entries.append(tf.broadcast_to(entry, [count]))
  rows = _encode("Features", feature=tf.stack(entries, 1))
  return _encode("Example", features=rows[:, tf.newaxis])


def _encode(message: str, **fields: tf.Tensor) -> tf.Tensor:
  """Encodes `[batch, size]` fields as messages: `string[batch]`."""
  shapes = [tf.shape(values) for values in fields.values()]
  sizes = tf.stack([tf.fill(shape[:1], shape[1]) for shape in shapes], 1)
  return tf.io.encode_proto(
    sizes, list(fields.values()), list(fields), f"tensorflow.{message}"
  )
