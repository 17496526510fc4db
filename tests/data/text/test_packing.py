"""Packing equals the obvious slow way."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from swe_tf.data.text import packing
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus
from tests.data.text import slow_packing

_VOCABULARY = vocab_lib.Vocabulary.from_tokens(corpus.tokens())


class PackingTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(12, 33, 64, 512)
  def test_equals_the_slow_way(self, seq_length):
    tokenizer = tokenizers.WordPieceTokenizer(_VOCABULARY)
    text = corpus.text(400)
    documents = [d.split("\n") for d in text.strip().split("\n\n")]
    packed = tf.function(packing.Packer(tokenizer, seq_length).pack)(
      tf.constant(text.split("\n"))
    )
    self.assertAllEqual(
      packed, slow_packing.pack(tokenizer, documents, seq_length)
    )

  def test_several_sentences_in_a_line(self):
    tokenizer = tokenizers.WordPieceTokenizer(_VOCABULARY)
    units = tokenizer.tokenize_units(
      tf.constant(['baba dede. "Fifi!" gogo 3.5 lulu? mama'])
    )
    self.assertAllEqual(units[0].row_lengths(), [3, 4, 6, 1])

  def test_documents(self):
    text = "\n = One = \n\na\nb\n = = Part = = \n\nc\n\n = Two = \n\nd\n\n\ne"
    found, starts = packing.split_documents(tf.constant(text.split("\n")))
    self.assertEqual(
      [line.decode() for line in found.numpy()],
      ["= One =", "a", "b", "= = Part = =", "c", "= Two =", "d", "e"],
    )
    self.assertAllEqual(np.flatnonzero(starts), [0, 5, 7])

  @parameterized.parameters((["", " ", ""],), ([],))
  def test_no_text(self, lines):
    tokenizer = tokenizers.WordPieceTokenizer(_VOCABULARY)
    packer = packing.Packer(tokenizer, 16)
    self.assertEqual(packer.pack(tf.constant(lines, tf.string)).shape, [0, 16])

  def test_characters_are_packed_by_words(self):
    letters = [*vocab_lib.SPECIAL_TOKENS, *" abcdefgh."]
    tokenizer = tokenizers.CharacterTokenizer(
      vocab_lib.Vocabulary.from_tokens(letters)
    )
    packed = packing.Packer(tokenizer, 12).pack(
      tf.constant(["Abc  de. fgh", "", "abcdefghabcdefgh b"])
    )
    self.assertEqual(
      ["".join(letters[i] for i in row) for row in packed.numpy()],
      [
        "[CLS]abc de. [SEP][PAD][PAD]",
        "[CLS]fgh [SEP]abcde[SEP]",
        "[CLS]fghabcdefg[SEP]",
        "[CLS]h b [SEP][PAD][PAD][PAD][PAD][PAD][PAD]",
      ],
    )
