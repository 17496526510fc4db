"""The corpus of docstrings; tokenizers against Model Garden's; vocabularies."""

import pathlib
import sys
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib


def test_corpus(tmp_path):
  before = set(sys.modules)
  first, second = (
    docstrings.write_corpus(f"{tmp_path}/{name}", 1_000_000, packages=["numpy"])
    for name in "ab"
  )
  assert set(sys.modules) == before, "A package was imported."
  train, validation, vocab = (pathlib.Path(path).read_text() for path in first)
  assert [train, validation, vocab] == [
    pathlib.Path(path).read_text() for path in second
  ]
  assert 900_000 < len(train) + len(validation) < 1_000_000
  assert 0.03 < len(validation) / len(train) < 0.08
  # No document is in both, and no paragraph twice.
  lines = [line for line in (train + validation).split("\n") if line]
  assert len(set(lines)) == len(lines)
  assert "ndarray" in train and ">>>" not in train
  # The vocabulary is one of characters, and knows nearly all of them.
  assert len(vocab.rstrip("\n").split("\n")) == 69
  vocabulary = vocab_lib.Vocabulary.load(first.vocab)
  ids = tokenizers.CharacterTokenizer(vocabulary).tokenize([validation])
  assert np.mean(ids.values == vocabulary.id_of("[UNK]")) < 0.002


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
_SPECIALS = "\n".join(vocab_lib.SPECIAL_TOKENS)


@pytest.fixture(name="both", params=[True, False], ids=["lower", "cased"])
def _both(request, tmp_path):
  """Returns the ids of our tokenizer and of Model Garden's."""
  lower_case = request.param
  # Every character of the hard lines is known.
  characters = "".join([*_HARD, _ASCII])
  if lower_case:
    characters = unicodedata.normalize("NFD", characters.lower())
  printed = filter(str.isprintable, sorted(set(characters)))
  known = [c for c in printed if not c.isspace()]
  words = ["the", "and", "quoted", "mixed", "re", "##re", "##ing", "wid"]
  tokens = [*vocab_lib.SPECIAL_TOKENS, *words, *known]
  tokens += ["##" + c for c in known]
  path = tmp_path / "vocab.txt"
  path.write_text("".join(f"{token}\n" for token in tokens))
  stock = tokenization.FullTokenizer(str(path), do_lower_case=lower_case)
  vocabulary = vocab_lib.Vocabulary.load(path)
  ours = tokenizers.WordPieceTokenizer(vocabulary, lower_case)
  return lambda lines: zip(
    lines,
    ours.tokenize(tf.constant(lines)).to_list(),
    [stock.convert_tokens_to_ids(stock.tokenize(line)) for line in lines],
  )


def test_ids_equal_model_gardens(both):
  prose = [
    line
    for document, _ in zip(docstrings.documents(packages=()), range(300))
    for line in document.split("\n")
  ]
  points = [
    chr(point)
    for point in range(1, sys.maxunicode + 1)
    # Python knows nothing of unassigned ones, and lines end at newlines.
    if unicodedata.category(chr(point)) not in ("Cn", "Cs", "Co")
    and point != 10
  ]
  parts = (points[i : i + 50] for i in range(0, len(points), 50))
  every = ["a" + "b a".join(part) + "b" for part in parts]
  for line, our_ids, stock_ids in both([*_HARD, *prose, *every]):
    assert our_ids == stock_ids, ascii(line)


def test_characters():
  tokens = [*vocab_lib.SPECIAL_TOKENS, *" abc."]
  vocabulary = vocab_lib.Vocabulary.from_tokens(tokens)
  tokenizer = tokenizers.CharacterTokenizer(vocabulary)
  ids = tokenizer.tokenize(tf.constant([" A\t b.", "cé\U0001f600"]))
  assert [[tokens[i] for i in row] for row in ids.to_list()] == [
    ["a", " ", "b", ".", " "],
    ["c", "[UNK]", "[UNK]", " "],
  ]
  # Letters form words.
  assert tokenizer.joins_left[5:].tolist() == [False, True, True, True, False]
  for extra, message in ((["ab", " "], "'ab'"), (["a"], "space")):
    vocabulary = vocab_lib.Vocabulary.from_tokens([*tokens[:5], *extra])
    with pytest.raises(errors.UsageError, match=message):
      tokenizers.CharacterTokenizer(vocabulary)


def test_line_ends_make_no_difference(tmp_path):
  path = tmp_path / "vocab.txt"
  unix = f"{_SPECIALS}\n[unused1]\n \né\n".encode()
  path.write_bytes(unix)
  first = vocab_lib.Vocabulary.load(path)
  path.write_bytes(unix.replace(b"\n", b"\r\n").rstrip())
  assert first.sha256 == vocab_lib.Vocabulary.load(path).sha256
  assert first.tokens[5:] == ("[unused1]", " ", "é")
  assert first.is_text.tolist() == [False] * 6 + [True] * 2
  other = vocab_lib.Vocabulary.from_tokens(first.tokens[::-1])
  assert first.sha256 != other.sha256


@pytest.mark.parametrize(
  "content, message",
  [
    (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na", r"has no \[MASK\] among its 5"),
    (f"{_SPECIALS}\na\nb\na".encode(), "'a' twice"),
    (f"{_SPECIALS}\n\na".encode(), "empty line, line 6"),
    (b"\xff\xfe", "not UTF-8"),
  ],
)
def test_faulty_vocabularies(tmp_path, content, message):
  (tmp_path / "vocab.txt").write_bytes(content)
  with pytest.raises(errors.UsageError, match=message) as caught:
    vocab_lib.Vocabulary.load(tmp_path / "vocab.txt")
  assert "\n" not in str(caught.value)
