"""Vocabulary files, sound and not."""

import pathlib

from absl.testing import parameterized
import tensorflow as tf

from swe_tf import errors
from swe_tf.data.text import vocab as vocab_lib

_SPECIALS = "\n".join(vocab_lib.SPECIAL_TOKENS)


class VocabTest(tf.test.TestCase, parameterized.TestCase):
  def _write(self, content):
    path = pathlib.Path(self.create_tempdir().full_path) / "vocab.txt"
    path.write_bytes(content)
    return str(path)

  def test_line_ends_make_no_difference(self):
    unix = f"{_SPECIALS}\n[unused1]\n \né\n".encode()
    dos = unix.replace(b"\n", b"\r\n").rstrip()
    first, second = (
      vocab_lib.Vocabulary.load(self._write(c)) for c in (unix, dos)
    )
    self.assertEqual(first.tokens[5:], ("[unused1]", " ", "é"))
    self.assertEqual(first.sha256, second.sha256)
    self.assertAllEqual(first.is_text, [False] * 6 + [True] * 2)
    other = vocab_lib.Vocabulary.from_tokens(first.tokens[::-1])
    self.assertNotEqual(first.sha256, other.sha256)

  @parameterized.parameters(
    (b"", r"no \[PAD\]"),
    (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na", r"has no \[MASK\] among its 5"),
    (f"{_SPECIALS}\na\nb\na".encode(), "'a' twice"),
    (f"{_SPECIALS}\n\na".encode(), "empty line, line 6"),
    (b"\xff\xfe", "not UTF-8"),
  )
  def test_faults(self, content, message):
    with self.assertRaisesRegex(errors.UsageError, message) as caught:
      vocab_lib.Vocabulary.load(self._write(content))
    self.assertNotIn("\n", str(caught.exception))
