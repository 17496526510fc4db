"""Tokenizers for Model Garden's converters, which ask one text at a time.

Its own WordPiece tokenizer, several times faster on real text, and characters,
for models such as the demo's. Whole files of raw text are better off with
`tokenizers`, which gives the same ids.
"""

from collections.abc import Sequence
from typing import Any

from official.nlp.tools import tokenization
from swe_tf import files
from swe_tf.data.text import vocab as vocab_lib


class WordCachedTokenizer(tokenization.FullTokenizer):
  """A `FullTokenizer` that tokenizes every word only once.

  The tokens are the same by construction: `FullTokenizer` never looks beyond a
  space, and a few ten thousand words make up nearly all of a corpus.

  Attributes:
    vocab_file: The vocabulary file.
    vocabulary: What is in it.
  """

  def __init__(self, vocab_file: files.PathLike, do_lower_case: bool = True):
    self.vocabulary = vocab_lib.Vocabulary.load(str(vocab_file))
    super().__init__(str(vocab_file), do_lower_case=do_lower_case)
    self.vocab_file = str(vocab_file)
    self._tokens_of = {}

  def meta(self) -> dict[str, Any]:
    """Returns what tells two tokenizers apart, for `meta.json`."""
    return {
      "vocab_size": len(self.vocabulary),
      "vocab_sha256": self.vocabulary.sha256,
      "do_lower_case": self.basic_tokenizer.do_lower_case,
    }

  def tokenize(self, text: str) -> list[str]:
    tokens = []
    for word in text.split(" "):
      word_tokens = self._tokens_of.get(word)
      if word_tokens is None:
        word_tokens = self._tokens_of[word] = super().tokenize(word)
      tokens += word_tokens
    return tokens


class CharacterTokenizer:
  """One token a character, lower-cased, and a space after every word.

  Attributes:
    vocab_file: The vocabulary file.
    vocabulary: What is in it: special tokens and single characters.
  """

  def __init__(self, vocab_file: files.PathLike):
    self.vocab_file = str(vocab_file)
    self.vocabulary = vocab_lib.Vocabulary.load(self.vocab_file)
    self._ids = {
      token: index for index, token in enumerate(self.vocabulary.tokens)
    }

  def meta(self) -> dict[str, Any]:
    """Returns what tells two tokenizers apart, for `meta.json`."""
    return {
      "vocab_size": len(self.vocabulary),
      "vocab_sha256": self.vocabulary.sha256,
      "do_lower_case": True,
    }

  def tokenize(self, text: str) -> list[str]:
    # Converters also ask word by word: each has its space after it, so that
    # the tokens of a text are those of its words.
    return [
      character if character in self._ids else "[UNK]"
      for word in text.lower().split()
      for character in f"{word} "
    ]

  def convert_tokens_to_ids(self, tokens: Sequence[str]) -> list[int]:
    return [self._ids[token] for token in tokens]


Tokenizer = WordCachedTokenizer | CharacterTokenizer


def load_tokenizer(
  vocab_file: files.PathLike, do_lower_case: bool = True
) -> Tokenizer:
  """Returns the tokenizer that a vocabulary is for.

  Args:
    vocab_file: The vocabulary. If all it has besides special tokens is single
      characters, the space among them, it is one of characters: WordPiece never
      makes a space, and would find no word in it.
    do_lower_case: Whether it is an uncased one. Characters always are.

  Raises:
    UsageError: If it is not a vocabulary.
  """
  vocabulary = vocab_lib.Vocabulary.load(str(vocab_file))
  texts = {
    token
    for token, is_text in zip(vocabulary.tokens, vocabulary.is_text)
    if is_text
  }
  if " " in texts and all(len(token) == 1 for token in texts):
    return CharacterTokenizer(vocab_file)
  return WordCachedTokenizer(vocab_file, do_lower_case)
