"""The manifest of prepared shards: what they hold and what made them.

`swe prepare pretraining` writes `manifest.json` last, so a set of shards that
has one is whole. Training reads it: see `checks`.
"""

import collections
from collections.abc import Mapping
import dataclasses
import functools
import json
import math
import os
from typing import Any

FILE_NAME = "manifest.json"
JOURNAL_NAME = "prepare.journal"


@dataclasses.dataclass(frozen=True)
class Settings:
  """What shards are made with.

  Attributes:
    seq_length: The length of the sequences.
    max_predictions_per_seq: The most predictions in a sequence.
    masking: `random` or `whole_word`.
    masking_rate: The part of the tokens to predict.
    lower_case: Whether the text was lower-cased.
    next_sentence: Whether the sequences are sentence pairs.
    dupe_factor: How often each sequence is written, with other masks.
    num_shards: The number of shards.
    seed: The seed of the masks, of the pairs and of the order in a shard.
    vocab_size: The number of tokens in the vocabulary.
    vocab_sha256: The digest of the vocabulary.
  """

  seq_length: int
  max_predictions_per_seq: int
  masking: str
  masking_rate: float
  lower_case: bool
  next_sentence: bool
  dupe_factor: int
  num_shards: int
  seed: int
  vocab_size: int
  vocab_sha256: str

  def shard_name(self, index: int) -> str:
    return f"pretrain-{index:05d}-of-{self.num_shards:05d}.tfrecord"


def default_max_predictions(seq_length: int, rate: float) -> int:
  """Returns the predictions that `rate` asks for in a full sequence."""
  # 0.15 * 20 is 3.0000000000000004 for some orders of multiplication.
  return math.ceil(round(seq_length * rate, 6))


def build(
  job: Mapping[str, Any], shards: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
  """Returns the content of a manifest.

  Args:
    job: The `settings` and the `inputs` that the shards are made of.
    shards: The counts of every shard: `examples`, `tokens`, `predictions`.
  """
  totals = collections.Counter()
  for counts in shards.values():
    totals.update(counts)
  return {**totals, **job, "shards": dict(sorted(shards.items()))}


def find(shard: str) -> dict[str, Any] | None:
  """Returns the manifest beside a shard, or None."""
  # Shards may be anywhere; making them, which is local, needs no TensorFlow.
  import tensorflow as tf

  path = os.path.join(os.path.dirname(shard), FILE_NAME)
  if not tf.io.gfile.exists(path):
    return None
  return _read(path, tf.io.gfile.stat(path).mtime_nsec)


@functools.cache
def _read(path: str, mtime: int) -> dict[str, Any]:
  del mtime  # A part of the key: a set that was made anew is read anew.
  import tensorflow as tf

  with tf.io.gfile.GFile(path) as f:
    return json.load(f)


def count_examples(shard: str) -> int | None:
  """Returns the number of examples in a shard, if its manifest knows it."""
  found = find(shard)
  counts = found["shards"].get(os.path.basename(shard)) if found else None
  return counts["examples"] if counts else None
