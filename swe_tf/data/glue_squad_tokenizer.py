"""Model Garden's WordPiece tokenizer, several times faster on real text.

For the converters of Model Garden, which ask for tokens one text at a time.
Whole files of raw text are better off with `tokenizers.WordPieceTokenizer`.
"""

from typing import Any

from official.nlp.tools import tokenization

from swe_tf import errors
from swe_tf.data import glue_squad_files as files
from swe_tf.data import vocab as vocab_lib


class WordCachedTokenizer(tokenization.FullTokenizer):
  """A `FullTokenizer` that tokenizes every word only once.

  The tokens are the same by construction: `FullTokenizer` never looks beyond a
  space, and a few ten thousand words make up nearly all of a corpus.

  Attributes:
    vocab_file: The vocabulary file.
    vocabulary: What is in it.
  """

  def __init__(self, vocab_file: files.PathLike, do_lower_case: bool = True):
    try:
      self.vocabulary = vocab_lib.Vocabulary.load(str(vocab_file))
    except ValueError as error:
      raise errors.UsageError(str(error)) from error
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
