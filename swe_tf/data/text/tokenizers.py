"""Converts text to token ids.

WordPiece, as BERT uses it, and single characters, for models that train on a
laptop: inside a TensorFlow graph for whole files (`packing` makes sequences of
the ids), and text by text for Model Garden's GLUE and SQuAD converters.
"""

from collections.abc import Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf import files
from swe_tf.data.text import vocab as vocab_lib

# What Model Garden's `FullTokenizer` drops: control characters except tab,
# newline and carriage return, format characters, and U+FFFD.
_CONTROL = r"\x{0}-\x{8}\x{b}\x{c}\x{e}-\x{1f}\x{7f}-\x{9f}\p{Cf}\x{FFFD}"

# The end of a sentence: . ! or ?, closing quotes and brackets, white space.
_SENTENCE_END = r'([.!?]["\')\]”’]*)\s+'


def normalize(texts: tf.Tensor, lower_case: bool) -> tf.Tensor:
  """Returns texts as WordPiece sees them: no controls; lower case, no accents.

  The latter two only with `lower_case`.
  """
  dropped = _CONTROL
  if lower_case:
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf_text.normalize_utf8(texts, "NFD")
    dropped += r"\p{Mn}"  # Accents.
  return tf.strings.regex_replace(texts, f"[{dropped}]", "")


class WordPieceTokenizer:
  """BERT's tokenizer: the ids of Model Garden's `FullTokenizer`, but fast.

  The ids differ only for words of more than 400 bytes that have at most 400
  characters, for code points that are not in Python's Unicode tables, and, if
  the case is kept, for invalid UTF-8. `joins_left` says for every id whether it
  continues the word of the token before it, `joins_right` whether it can be
  continued.
  """

  def __init__(self, vocabulary: vocab_lib.Vocabulary, lower_case: bool = True):
    self.vocabulary = vocabulary
    self.joins_left = vocabulary.is_text & np.array(
      [token.startswith("##") for token in vocabulary.tokens]
    )
    self.joins_right = vocabulary.is_text
    self.lower_case = lower_case
    self._tokenizer = tf_text.FastBertTokenizer(
      list(vocabulary.tokens),
      token_out_type=tf.int32,
      max_bytes_per_word=400,  # `FullTokenizer`: 400 characters.
      lower_case_nfd_strip_accents=False,
    )

  def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
    """Returns the ids `[texts, (ids)]` of a vector of strings."""
    # Not by FastBertTokenizer, which also decomposes compatibility characters
    # (½, ², …); this costs a tenth of tokenizing.
    return self._tokenizer.tokenize(normalize(texts, self.lower_case))

  def tokenize_units(self, lines: tf.Tensor) -> tf.RaggedTensor:
    """Returns the ids of the sentences: `[lines, (sentences), (ids)]`."""
    marked = tf.strings.regex_replace(lines, _SENTENCE_END, "\\1\n")
    sentences = tf.strings.split(marked, sep="\n")
    return sentences.with_values(self.tokenize(sentences.values))


class CharacterTokenizer:
  """One id per character, lower-cased; white space becomes a single space.

  Consecutive letters and digits form a word; all else is a word of its own.
  """

  lower_case = True

  def __init__(self, vocabulary: vocab_lib.Vocabulary):
    characters = vocabulary.texts
    if not vocabulary.is_of_characters:
      found = sorted(characters, key=len, reverse=True)[:3]
      raise errors.UsageError(
        "a character vocabulary has single characters, including the space, "
        f"and the special tokens, but this one has {found or 'none'}; use "
        "tokenizer: wordpiece, or write one with swe_tf.data.text.docstrings."
      )
    self.vocabulary = vocabulary
    self._space = vocabulary.id_of(" ")
    self.joins_left = self.joins_right = vocabulary.is_text & np.array(
      [token.isalnum() for token in vocabulary.tokens]
    )
    # Code points index a table directly; those beyond the last known one use
    # the last entry, which is unknown.
    points = list(map(ord, characters))
    unknown = vocabulary.id_of("[UNK]")
    self._ids = np.full([max(points) + 2], unknown, np.int32)
    self._ids[points] = np.flatnonzero(vocabulary.is_text)

  def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
    """Returns the ids `[texts, (ids)]`, with a space after every text."""
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(tf.strings.strip(texts), r"\s+", " ") + " "
    points = tf.strings.unicode_decode(texts, "UTF-8")
    return points.with_values(
      tf.gather(self._ids, tf.minimum(points.values, len(self._ids) - 1))
    )

  def tokenize_units(self, lines: tf.Tensor) -> tf.RaggedTensor:
    """Returns the ids of the words: `[lines, (words), (ids)]`."""
    # Not of sentences, which are about as long as the sequences of a character
    # model: kept whole, they would leave a third of each sequence empty.
    ids = self.tokenize(lines)
    # A space ends every word, and every line.
    starts = tf.where(tf.roll(ids.values, 1, 0) == self._space)[:, 0]
    words = tf.RaggedTensor.from_row_starts(ids.values, starts, validate=False)
    splits = tf.searchsorted(starts, ids.row_splits, out_type=tf.int64)
    return tf.RaggedTensor.from_row_splits(words, splits, validate=False)


Tokenizer = WordPieceTokenizer | CharacterTokenizer


def make(vocabulary: vocab_lib.Vocabulary, lower_case: bool) -> Tokenizer:
  """Returns the tokenizer that a vocabulary is for."""
  if vocabulary.is_of_characters:
    return CharacterTokenizer(vocabulary)
  return WordPieceTokenizer(vocabulary, lower_case)


def tokenize_as_prepared(
  tokenizer: Tokenizer, texts: tf.Tensor
) -> tf.RaggedTensor:
  """Returns the ids that `CachedTokenizer` gives GLUE and SQuAD texts.

  For characters, `str.split` knows more white space than TensorFlow, and an
  empty text has no space after it.
  """
  if isinstance(tokenizer, WordPieceTokenizer):
    return tokenizer.tokenize(texts)
  texts = tf.strings.regex_replace(texts, r"[\p{Z}\x{1c}-\x{1f}\x{85}]", " ")
  ids = tokenizer.tokenize(texts)
  is_text = tf.strings.strip(texts) != ""
  kept = ids.with_values(tf.gather(is_text, ids.value_rowids()))
  return tf.ragged.boolean_mask(ids, kept)


def joins(tokenizer: Tokenizer, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
  """Returns whether the ids `right` continue the words of the ids `left`."""
  can_go_on = tf.gather(tokenizer.joins_right, left)
  return can_go_on & tf.gather(tokenizer.joins_left, right)


class CachedTokenizer:
  """Model Garden's WordPiece, or characters for a character vocabulary.

  Every word is tokenized once: few words make up nearly all of a corpus. The
  tokens are those of `FullTokenizer`, as it never looks beyond a space.
  Characters are lower-cased and have a space after every word, as in
  `CharacterTokenizer`.
  """

  def __init__(self, vocab_file: files.PathLike, do_lower_case: bool = True):
    self.vocab_file = str(vocab_file)
    self.vocabulary = vocab_lib.Vocabulary.load(self.vocab_file)
    self.do_lower_case = do_lower_case or self.vocabulary.is_of_characters
    self._ids = {token: i for i, token in enumerate(self.vocabulary.tokens)}
    self._tokenize_word = functools.cache(
      self._characters
      if self.vocabulary.is_of_characters
      else tokenization.FullTokenizer(self.vocab_file, do_lower_case).tokenize
    )

  def facts(self) -> dict[str, Any]:
    """Returns what identifies the tokenizer, for a manifest."""
    return {
      "vocab_size": len(self.vocabulary),
      "vocab_sha256": self.vocabulary.sha256,
      "do_lower_case": self.do_lower_case,
    }

  def tokenize(self, text: str) -> list[str]:
    # Only at spaces: the tokenizer itself knows what other white space is.
    return [
      token for word in text.split(" ") for token in self._tokenize_word(word)
    ]

  def convert_tokens_to_ids(self, tokens: Sequence[str]) -> list[int]:
    return [self._ids[token] for token in tokens]

  def _characters(self, text: str) -> list[str]:
    return [
      character if character in self._ids else "[UNK]"
      for word in text.lower().split()
      for character in f"{word} "
    ]
