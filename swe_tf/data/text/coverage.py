"""Does a vocabulary know the words of a text? What it does not know is [UNK].

[UNK] is never predicted, so a text of nothing else trains at a loss of 0.
"""

from collections.abc import Sequence

import tensorflow as tf

from swe_tf import errors
from swe_tf import files
from swe_tf.data.text import text_files
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib

_REFUSED, _WARNED = 0.5, 0.05  # Shares of [UNK] among the tokens.
_CASED = 0.01  # Above this share of its tokens, a vocabulary is cased.
# A sample of a corpus.
_FILES, _LINES, _BYTES_PER_LINE = 16, 1000, 4096


def check(
  vocabulary: vocab_lib.Vocabulary,
  lower_case: bool,
  unknown: int,
  total: int,
  source: files.PathLike,
) -> list[str]:
  """Raises `UsageError` if most tokens of a text are [UNK].

  Returns the warnings, if many are, or if the case does not fit. They call the
  text `source`.
  """
  cased = [text for text in vocabulary.texts if text != text.lower()]
  share, case = unknown / max(1, total), ""
  if lower_case and len(cased) > _CASED * len(vocabulary.texts):
    case = (
      f"the vocabulary is cased ({cased[0]!r}), but the text is lower-cased; "
      "set lower_case to false."
    )
  elif not lower_case and not cased and share > _CASED:
    case = (
      "the vocabulary is lower-case, but the case of the text is kept; set "
      "lower_case to true."
    )
  found = f"{source}: {share:.0%} of the tokens are [UNK]"
  hint = case or "is it the vocabulary of this text?"
  if share > _REFUSED:
    raise errors.UsageError(f"{found}, which a model cannot learn: {hint}")
  if share > _WARNED:
    return [f"{found}: {hint}"]
  return [f"{source}: {case}"] if case else []


def check_texts(
  tokenizer: tokenizers.CachedTokenizer,
  texts: Sequence[str],
  source: files.PathLike,
) -> list[str]:
  """Checks a tokenizer on some of the texts; see `check`."""
  tokens = [
    token
    for text in texts[:: -(-len(texts) // _LINES) or 1]
    for token in tokenizer.tokenize(text)
  ]
  unknown = tokens.count("[UNK]")
  lower_case = tokenizer.do_lower_case
  return check(tokenizer.vocabulary, lower_case, unknown, len(tokens), source)


def check_files(
  tokenizer: tokenizers.Tokenizer, paths: Sequence[str]
) -> list[str]:
  """Checks a tokenizer on the first lines of some of the files; see `check`."""
  unknown, total = tokenizer.vocabulary.id_of("[UNK]"), 0
  count = 0
  for path in paths[:: -(-len(paths) // _FILES)]:
    lines = text_files.read_lines(path)
    for chunk in lines.take(_LINES).batch(_LINES):
      cut = tf.strings.substr(chunk, 0, _BYTES_PER_LINE)
      ids = tokenizer.tokenize(cut).flat_values.numpy()
      total += ids.size
      count += int((ids == unknown).sum())
  source = paths[0] + ", ..." * (len(paths) > 1)
  return check(tokenizer.vocabulary, tokenizer.lower_case, count, total, source)
