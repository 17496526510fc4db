"""Turns a block of text into a shard: masked examples, or bare tokens.

A shard is a pure function of its text, its number and the settings, whatever
process makes it.
"""

from collections.abc import Mapping
import os
from typing import Any

import numpy as np
import tensorflow as tf

from swe_tf import files
from swe_tf import sameness
from swe_tf.data.prepare import manifest
from swe_tf.data.text import masking
from swe_tf.data.text import packing
from swe_tf.data.text import token_records
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
      settings.max_predictions_per_seq or 0,  # The job has filled it in.
    )
    # Chunks and batches vary in size: without signatures, each would retrace.
    lines = tf.TensorSpec([None], tf.string)
    number = tf.TensorSpec([], tf.int64)
    sequences = tf.TensorSpec([None, settings.seq_length], tf.int32)
    self._pack = tf.function(packer.pack, input_signature=[lines])
    self._to_records = tf.function(
      self._mask_and_serialize, input_signature=[number, number, sequences]
    )

  def write(self, index: int, text: bytes) -> dict[str, Any]:
    """Writes a shard, complete or not at all.

    Returns its counts and its fingerprint, for the manifest.
    """
    # By shard, so that the bytes do not depend on which process writes it.
    rng = np.random.default_rng([self._settings.seed, index])
    lines = text.split(b"\n")
    chunks = (
      tf.constant(lines[start : start + packing.LINES_PER_CHUNK])
      for start in range(0, len(lines), packing.LINES_PER_CHUNK)
    )
    ids = np.concatenate([self._pack(chunk) for chunk in chunks])
    copies = np.tile(np.arange(len(ids)), self._settings.dupe_factor)
    # Neighbours in the text must not be neighbours in a batch.
    ids = ids[rng.permutation(copies)]
    batch_size = -(-_TOKENS_PER_BATCH // self._settings.seq_length)
    counts = {"examples": len(ids), "tokens": 0, "predictions": 0}
    path = os.path.join(self._output_dir, self._settings.shard_name(index))
    with (
      files.complete_or_absent(path) as scratch,
      tf.io.TFRecordWriter(scratch) as writer,
    ):
      for start in range(0, len(ids), batch_size):
        batch = ids[start : start + batch_size]
        if self._settings.fresh_masks:
          records, tokens, predictions = self._to_tokens(batch)
        else:
          records, tokens, predictions = self._to_records(index, start, batch)
          records = records.numpy()
        for record in records:
          writer.write(record)
        counts["tokens"] += int(tokens)
        counts["predictions"] += int(predictions)
    return {**counts, "fingerprint": sameness.fingerprint([path])}

  def _to_tokens(self, ids):
    """Returns a batch's records, and how many tokens and predictions it has.

    The predictions are those to be expected in a pass.
    """
    records = token_records.encode(ids, self._vocabulary.id_of("[PAD]"))
    maskable = np.count_nonzero(self._vocabulary.is_text[ids])
    tokens = sum(map(len, records)) // token_records.BYTES_PER_TOKEN
    return records, tokens, round(self._settings.masking_rate * maskable)

  def _mask_and_serialize(self, shard, first, ids):
    """Returns a batch's records and its numbers of tokens and predictions."""
    count, length = tf.shape(ids)[0], self._settings.seq_length
    draws = masking.draw(self._settings.seed, shard, first, count, length)
    features = self._masker.mask(ids, draws)
    # The names that Model Garden's loader expects by default.
    features["input_ids"] = features.pop("input_word_ids")
    # There are no sentence pairs: one row is serialized for all.
    features["segment_ids"] = tf.zeros([1, length], tf.int32)
    features["next_sentence_labels"] = tf.zeros([1, 1], tf.int32)
    return (
      _serialize(features, count),
      tf.reduce_sum(features["input_mask"]),
      tf.reduce_sum(features["masked_lm_weights"]),
    )


def _serialize(
  features: Mapping[str, tf.Tensor], count: tf.Tensor
) -> tf.Tensor:
  """Returns a serialized `tf.train.Example` for each of `count` rows.

  Features are `[count, size]`, or `[1, size]` for all rows. This runs in the
  graph: a Python loop takes as long as everything else together.
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
