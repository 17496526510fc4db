"""Chooses which tokens a model predicts, and what it sees in their place.

The masked language model of BERT: 15% of the tokens are predicted; 80% of
these are replaced by [MASK], 10% by a random token, 10% are left as they are.
With whole-word masking, either all pieces of a word are predicted or none, and
all of them meet the same fate.

Masks are a pure function of a seed and the place of the example, so that a
resumed run, an evaluation and a repeated `swe prepare` see the same ones. The
stock `tf_text.RandomItemSelector` draws from a stateful generator instead.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from swe_tf.data.text import tokenizers

# What the rows of an example's random numbers decide: the order in which words
# are taken, the fate of a word, and the token that replaces a token.
_ORDER, _FATE, _REPLACEMENT = range(3)


def draw(
  seed: int, stream: int, first: tf.Tensor, count: tf.Tensor, seq_length: int
) -> tf.Tensor:
  """Returns the random numbers of `count` consecutive examples.

  An example's numbers depend on its own place alone, not on the batch it is
  drawn with: Philox, a counter-based generator, is set to the place of the
  first one. `tf.random.stateless_uniform` always starts at 0.

  Args:
    seed: The seed of the run.
    stream: The number of the stream of examples: an input pipeline or a shard.
    first: A scalar: the place of the first example in its stream.
    count: A scalar: the number of examples.
    seq_length: The length of an example.

  Returns:
    `float32[count, 3, seq_length]` in [0, 1).
  """
  # A step of the counter gives four numbers, so an example takes whole steps.
  length = -(-seq_length // 4) * 4
  steps = tf.cast(first, tf.uint64) * (3 * length // 4)
  seed = tf.stack([tf.cast(seed, tf.int64), tf.cast(stream, tf.int64)])
  key, _ = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
  numbers = tf.raw_ops.StatelessRandomUniformV2(
    shape=[count, 3, length],
    key=key,
    counter=tf.stack([steps, 0]),
    alg=tf.random.Algorithm.PHILOX.value,
  )
  return numbers[:, :, :seq_length]


@dataclasses.dataclass(frozen=True)
class Masker:
  """Masks batches of packed sequences.

  Attributes:
    tokenizer: The tokenizer that made the ids. It knows which of them are
      special, and which continue a word.
    masking: `random` or `whole_word`.
    rate: The fraction of the maskable tokens to predict.
    max_predictions: The most predictions in a sequence.
  """

  tokenizer: tokenizers.Tokenizer
  masking: str
  rate: float
  max_predictions: int

  def mask(self, ids: tf.Tensor, draws: tf.Tensor) -> dict[str, tf.Tensor]:
    """Masks a batch of sequences.

    Args:
      ids: `int32[batch, seq_length]`, padded with [PAD].
      draws: `float32[batch, 3, seq_length]`: see `draw`.

    Returns:
      A dict with the masked `input_word_ids`, their `input_mask`, and
      `masked_lm_positions` (ascending), `masked_lm_ids`, `masked_lm_weights`:
      each `[batch, max_predictions]`, padded with zeros.
    """
    vocabulary = self.tokenizer.vocabulary
    words = self._words(ids)
    positions, weights = self._select(ids, words, draws[:, _ORDER])
    labels = tf.gather(ids, positions, batch_dims=1)
    masked_words = tf.gather(words, positions, batch_dims=1)
    fate = tf.gather(draws[:, _FATE], masked_words, batch_dims=1)
    replacement = tf.gather(draws[:, _REPLACEMENT], positions, batch_dims=1)
    inputs = tf.where(fate < 0.9, self._random_ids(replacement), labels)
    inputs = tf.where(fate < 0.8, vocabulary.id_of("[MASK]"), inputs)
    # Unused slots point at position 0: they write back what is there.
    inputs = tf.where(weights > 0, inputs, labels)
    rows = tf.range(tf.shape(ids)[0])[:, tf.newaxis]
    places = tf.stack([rows + tf.zeros_like(positions), positions], -1)
    return {
      "input_word_ids": tf.tensor_scatter_nd_update(ids, places, inputs),
      "input_mask": tf.cast(ids != vocabulary.id_of("[PAD]"), tf.int32),
      "masked_lm_positions": positions,
      "masked_lm_ids": labels * tf.cast(weights, tf.int32),
      "masked_lm_weights": weights,
    }

  def _words(self, ids):
    """Numbers the words of every sequence from 0: `int32[batch, length]`."""
    if self.masking == "random":
      return tf.broadcast_to(tf.range(tf.shape(ids)[1]), tf.shape(ids))
    continues = tokenizers.joins(self.tokenizer, ids[:, :-1], ids[:, 1:])
    starts = tf.pad(tf.cast(~continues, tf.int32), [[0, 0], [1, 0]])
    return tf.cumsum(starts, axis=1)

  def _select(self, ids, words, order):
    """Returns the positions to predict and their weights, slot by slot."""
    length = ids.shape[1]
    maskable = tf.gather(self.tokenizer.vocabulary.is_text, ids)
    # The budget is rounded up or down at random: otherwise, short sequences
    # would miss the rate. [CLS] is never selected, so its number is free.
    budget = self.rate * tf.math.count_nonzero(
      maskable, 1, keepdims=True, dtype=tf.float32
    )
    budget = tf.cast(tf.floor(budget + order[:, :1]), tf.int32)
    budget = tf.clip_by_value(budget, 1, self.max_predictions)

    if self.masking == "random":
      keys = tf.where(maskable, order, -1.0)
      keys, ranking = tf.math.top_k(keys, k=self.max_predictions)
      taken = (keys >= 0) & (tf.range(self.max_predictions) < budget)
    else:
      # The pieces of a word share its key and stay together, as equal keys keep
      # their order. Three times the predictions are enough to choose from.
      keys = tf.where(maskable, tf.gather(order, words, batch_dims=1), -1.0)
      size = min(length, 3 * self.max_predictions + 1)
      keys, ranking = tf.math.top_k(keys, k=size)
      words = tf.gather(words, ranking, batch_dims=1)
      taken = _take_words(words, keys >= 0, budget, is_all=size == length)

    found = tf.where(taken, length - ranking, 0)
    found = tf.math.top_k(found, k=self.max_predictions).values
    positions = tf.where(found > 0, length - found, 0)
    return positions, tf.cast(found > 0, tf.float32)

  def _random_ids(self, draws):
    """Maps numbers in [0, 1) to ids of text, never of a special token."""
    choices = np.flatnonzero(self.tokenizer.vocabulary.is_text).astype(np.int32)
    return tf.gather(choices, tf.cast(draws * len(choices), tf.int32))


def _take_words(words, maskable, budget, is_all):
  """Takes whole words in the given order, as many as the budget allows.

  Words that end within the budget are taken. If a word lies across its end, the
  next words of a single piece take its place.

  Args:
    words: `int32[batch, pieces]`: the word of each piece.
    maskable: `bool[batch, pieces]`: whether a piece may be taken.
    budget: `int32[batch, 1]`: the most pieces to take.
    is_all: Whether all pieces are given; if not, the last word may be cut off.

  Returns:
    `bool[batch, pieces]`: whether a piece is taken.
  """
  changes = words[:, 1:] != words[:, :-1]
  first = tf.pad(changes, [[0, 0], [1, 0]], constant_values=True)
  last = tf.pad(changes, [[0, 0], [0, 1]], constant_values=is_all)
  rank = tf.range(words.shape[1])[tf.newaxis]
  within = rank < budget
  across = tf.where((rank == budget) & ~first, words, -1)
  across = tf.reduce_max(across, 1, keepdims=True)
  taken = maskable & within & (words != across)
  missing = budget - tf.reduce_sum(tf.cast(taken, tf.int32), 1, keepdims=True)
  single = maskable & first & last & ~within
  return taken | single & (tf.cumsum(tf.cast(single, tf.int32), 1) <= missing)
