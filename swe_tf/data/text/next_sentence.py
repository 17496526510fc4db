"""Sentence pairs for BERT's next sentence prediction.

In half of the pairs, the second part is the text that follows the first; in the
other half, it is text from another document of the same shard. The paper trains
without pairs; they are here for comparisons with the original BERT.
"""

from collections.abc import Sequence

import numpy as np

from swe_tf.data.text import vocab as vocab_lib


def make_pairs(
  sequences: Sequence[Sequence[list[int]]],
  documents: Sequence[int],
  seq_length: int,
  vocabulary: vocab_lib.Vocabulary,
  rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Makes a pair from every sequence.

  Args:
    sequences: The ids of the sentences in each sequence.
    documents: The document of each sequence.
    seq_length: The length of a pair with its special tokens.
    vocabulary: The vocabulary of the ids.
    rng: The source of randomness.

  Returns:
    The pairs `int32[pairs, seq_length]`, their type ids, and the labels
    `int32[pairs, 1]`: 1 where the second part is random.
  """
  cls, sep, pad = map(vocabulary.id_of, ("[CLS]", "[SEP]", "[PAD]"))
  halves = [_split(sequence, rng) for sequence in sequences]
  partners = rng.permutation(len(sequences))
  coins = rng.random(len(sequences)) < 0.5
  ids = np.full([len(sequences), seq_length], pad, np.int32)
  types = np.zeros_like(ids)
  labels = np.zeros([len(sequences), 1], np.int32)
  for i, (first, second) in enumerate(halves):
    # A single sentence has no next one, so its second part is random.
    # A partner from the same document might really be the next text.
    if (coins[i] or not second) and documents[i] != documents[partners[i]]:
      other = halves[partners[i]]
      second = other[1] or other[0]
      labels[i] = 1
    first, second = _trim(first, second, seq_length - 3)
    pair = [cls, *first, sep, *second, sep]
    ids[i, : len(pair)] = pair
    types[i, len(first) + 2 : len(pair)] = 1
  return ids, types, labels


def _split(
  sentences: Sequence[list[int]], rng: np.random.Generator
) -> tuple[list[int], list[int]]:
  """Splits a sequence between two sentences; the second part may be empty."""
  middle = int(rng.integers(1, len(sentences))) if len(sentences) > 1 else 1
  return sum(sentences[:middle], []), sum(sentences[middle:], [])


def _trim(
  first: list[int], second: list[int], room: int
) -> tuple[list[int], list[int]]:
  """Cuts the end of the longer part, or of both, until the pair fits."""
  half = room // 2
  if len(first) + len(second) > room:
    if len(first) > half:
      first = first[: max(half, room - len(second))]
    second = second[: room - len(first)]
  return first, second
