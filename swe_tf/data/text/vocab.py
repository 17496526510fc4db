"""Vocabularies: one token per line, with BERT's special tokens.

Reads, checks and learns vocabularies. `tokenizers` splits text into tokens.
"""

import collections
from collections.abc import Iterable, Sequence
import dataclasses
import functools
import hashlib
import re

import numpy as np

from swe_tf import errors
from swe_tf import files

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# BERT's own vocabularies reserve tokens that occur in no text.
_NOT_TEXT = re.compile(r"\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """The tokens of a vocabulary file; a token's id is its line number from 0."""

  tokens: tuple[str, ...]

  @classmethod
  def load(cls, path: files.PathLike | None) -> "Vocabulary":
    """Reads and checks a file with one token per line."""
    if not path:
      raise errors.UsageError("no vocabulary is given; name a vocab.txt.")
    try:
      lines = files.read_text(path).split("\n")
    except errors.UsageError as error:
      raise errors.UsageError(f"the vocabulary: {error}") from error
    # Editors leave blank lines at the end; elsewhere they would shift the ids.
    while lines and not lines[-1]:
      lines.pop()
    return cls.from_tokens([line.rstrip("\r") for line in lines], path)

  @classmethod
  def from_tokens(
    cls, tokens: Sequence[str], name: files.PathLike = "vocabulary"
  ) -> "Vocabulary":
    """Makes a vocabulary from `tokens`; errors call it `name`."""
    missing = [token for token in SPECIAL_TOKENS if token not in tokens]
    fault = ""
    if missing:
      fault = f"no {', '.join(missing)} among its {len(tokens)} tokens"
    elif "" in tokens:
      fault = f"an empty line, line {tokens.index('') + 1}"
    elif len(set(tokens)) < len(tokens):
      twice, _ = collections.Counter(tokens).most_common(1)[0]
      fault = f"the token {twice!r} twice"
    elif all(map(_NOT_TEXT.fullmatch, tokens)):
      fault = f"{len(tokens)} special tokens and no other"
    if fault:
      raise errors.UsageError(
        f"{name} has {fault}; a BERT vocabulary has a line for each token, "
        f"among them {' '.join(SPECIAL_TOKENS)}."
      )
    return cls(tuple(tokens))

  def __len__(self):
    return len(self.tokens)

  def id_of(self, token: str) -> int:
    return self.tokens.index(token)

  @functools.cached_property
  def sha256(self) -> str:
    """The digest of the tokens, whatever the line endings of their file."""
    return hashlib.sha256("\n".join(self.tokens).encode("utf-8")).hexdigest()

  @functools.cached_property
  def is_text(self) -> np.ndarray:
    """Which ids stand for text: `bool[len(self)]`, False for special tokens."""
    return np.array([not _NOT_TEXT.fullmatch(token) for token in self.tokens])

  @property
  def texts(self) -> list[str]:
    return [token for token in self.tokens if not _NOT_TEXT.fullmatch(token)]

  @functools.cached_property
  def is_lower_case(self) -> bool:
    return all(text == text.lower() for text in self.texts)

  @functools.cached_property
  def is_of_characters(self) -> bool:
    """Whether it is for the character tokenizer: WordPiece makes no space."""
    return " " in self.texts and all(len(text) == 1 for text in self.texts)


def learn_wordpieces(
  lines: Iterable[bytes], size: int, lower_case: bool = True
) -> Vocabulary:
  """Learns a WordPiece vocabulary of about `size` tokens from text lines."""
  # Only this function needs TensorFlow, which takes seconds to import.
  import tensorflow as tf
  from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

  dataset = tf.data.Dataset.from_tensor_slices(list(lines)).batch(1000)
  tokens = bert_vocab_from_dataset.bert_vocab_from_dataset(
    dataset,
    vocab_size=size,
    reserved_tokens=list(SPECIAL_TOKENS),
    bert_tokenizer_params={"lower_case": lower_case},
  )
  return Vocabulary.from_tokens(tokens)
