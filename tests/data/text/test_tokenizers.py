"""The ids are those of Model Garden's tokenizer."""

import os
import sys
import unicodedata

from absl.testing import parameterized
import tensorflow as tf

from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib

_HARD = [
  "The Café Müller's naïve façade — “quoted” isn't it?",
  "km² ½ cup … 45″ №5 ﬁne ㎏ ª ß ŉ Ǆ",  # NFKC would take these apart.
  "zero\u200bwidth soft\u00adhyphen bell\x07 \ufeffmark re\ufffdplaced",
  "tab\tand\u00a0no-break\u3000wide   spaces \x85 next",
  "中文字符 mixed with 日本語 and 한국어",
  "ΟΔΥΣΣΕΥΣ ΣΑΣ İstanbul ǅ ẞ",
  "a@b.com $5.00 #tag C++ x^2 [MASK] [CLS] ##ing _under_score",
  "x" * 400 + " " + "x" * 401 + " end",
  "",
  "   ",
]


_ASCII = "".join(map(chr, range(33, 127)))


def _vocabulary(lower_case):
  """A vocabulary in which every character of the hard lines is known."""
  characters = sorted(set("".join(_HARD + [_ASCII])))
  if lower_case:
    characters = sorted(
      set(unicodedata.normalize("NFD", "".join(characters).lower()))
    )
  characters = [c for c in characters if not c.isspace() and c.isprintable()]
  words = ["the", "and", "quoted", "mixed", "re", "##re", "##ing", "wid"]
  return vocab_lib.Vocabulary.from_tokens(
    [
      *vocab_lib.SPECIAL_TOKENS,
      *words,
      *characters,
      *("##" + c for c in characters),
    ]
  )


class TokenizersTest(tf.test.TestCase, parameterized.TestCase):
  def _both(self, lines, lower_case):
    """Returns the ids of our tokenizer and of Model Garden's."""
    vocabulary = _vocabulary(lower_case)
    path = os.path.join(self.get_temp_dir(), "vocab.txt")
    with open(path, "w", encoding="utf-8") as f:
      f.writelines(f"{token}\n" for token in vocabulary.tokens)
    stock = tokenization.FullTokenizer(path, do_lower_case=lower_case)
    ours = tokenizers.WordPieceTokenizer(vocabulary, lower_case)
    return ours.tokenize(tf.constant(lines)).to_list(), [
      stock.convert_tokens_to_ids(stock.tokenize(line)) for line in lines
    ]

  @parameterized.parameters(True, False)
  def test_ids_equal_model_gardens(self, lower_case):
    prose = [
      line
      for document, _ in zip(docstrings.documents(packages=()), range(300))
      for line in document.split("\n")
    ]
    ours, stock = self._both(_HARD + prose, lower_case)
    for line, our_ids, stock_ids in zip(_HARD + prose, ours, stock):
      self.assertEqual(our_ids, stock_ids, line)

  @parameterized.parameters(True, False)
  def test_every_code_point(self, lower_case):
    points = [
      chr(point)
      for point in range(1, sys.maxunicode + 1)
      # Python knows nothing of unassigned ones, and lines end at newlines.
      if unicodedata.category(chr(point)) not in ("Cn", "Cs", "Co")
      and point != 10
    ]
    lines = [
      "a" + "b a".join(points[i : i + 50]) + "b"
      for i in range(0, len(points), 50)
    ]
    ours, stock = self._both(lines, lower_case)
    for line, our_ids, stock_ids in zip(lines, ours, stock):
      self.assertEqual(our_ids, stock_ids, ascii(line))

  def test_where_they_differ(self):
    # Invalid UTF-8 is [UNK] here and dropped there, if the case is kept. `swe
    # prepare` refuses it.
    ours, stock = self._both([b"the \xff and"], lower_case=False)
    self.assertLen(ours[0], 3)
    self.assertLen(stock[0], 2)
    # The length of a word is limited in bytes here, in characters there.
    ours, stock = self._both(["ß" * 300], lower_case=True)
    self.assertLen(ours[0], 1)
    self.assertLen(stock[0], 300)

  def test_characters(self):
    tokens = [*vocab_lib.SPECIAL_TOKENS, *" abc."]
    tokenizer = tokenizers.CharacterTokenizer(
      vocab_lib.Vocabulary.from_tokens(tokens)
    )
    ids = tokenizer.tokenize(tf.constant([" A\t b.", "cé\U0001f600"]))
    self.assertEqual(
      [[tokens[i] for i in row] for row in ids.to_list()],
      [["a", " ", "b", ".", " "], ["c", "[UNK]", "[UNK]", " "]],
    )
    # Letters form words.
    self.assertAllEqual(
      tokenizer.joins_left[5:], [False, True, True, True, False]
    )

  @parameterized.parameters(
    (["ab", " "], "'ab'"), (["a"], "space"), ([], "none")
  )
  def test_no_character_vocabulary(self, extra, message):
    vocabulary = vocab_lib.Vocabulary.from_tokens(
      [*vocab_lib.SPECIAL_TOKENS, *extra]
    )
    with self.assertRaisesRegex(errors.UsageError, message):
      tokenizers.CharacterTokenizer(vocabulary)
