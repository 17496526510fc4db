"""The tokenizer for Model Garden's GLUE and SQuAD converters, text by text.

For whole files of raw text use `tokenizers`, which gives the same ids inside a
graph.
"""

from collections.abc import Sequence
import functools
from typing import Any

from official.nlp.tools import tokenization
from swe_tf import files
from swe_tf.data.text import vocab as vocab_lib


class CachedTokenizer:
  """Model Garden's WordPiece, or characters for a character vocabulary.

  Every word is tokenized only once: a few tens of thousands of words make up
  nearly all of a corpus. The tokens are those of `FullTokenizer` by
  construction, as it never looks beyond a space. Characters have a space after
  every word, as in `tokenizers.CharacterTokenizer`.

  Attributes:
    vocab_file: The vocabulary file.
    vocabulary: Its content.
    do_lower_case: Whether it is uncased. Characters always are.
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
