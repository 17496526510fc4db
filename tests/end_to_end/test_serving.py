"""A SavedModel reads raw strings where only TensorFlow is imported."""

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.convert import serving
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry
from tests.convert import samples

_TEXTS = ["It is a cat.", "Été", "", "a cat " * 9]
_LENGTH = 12
_VOCABULARIES = {
  "lower_case": ["a", "it", "is", "cat", "##s", "e", "##t", "##e", "."],
  "cased": ["It", "is", "a", "cat", ".", "E"],
  "characters": [" ", *"abcdefghist."],
}


def _ids(vocabulary, kind):
  """Returns the ids of each text, the plain way."""
  if kind == "characters":
    tokenizer = tokenizers.CharacterTokenizer(vocabulary)
  else:
    tokenizer = tokenizers.WordPieceTokenizer(vocabulary, kind != "cased")
  first, last = vocabulary.id_of("[CLS]"), vocabulary.id_of("[SEP]")
  return [
    [first, *tokenizer.tokenize(tf.constant([text]))[0].numpy(), last]
    for text in _TEXTS
  ]


@pytest.mark.parametrize(
  "kind",
  ["lower_case", "characters", pytest.param("cased", marks=pytest.mark.slow)],
)
def test_raw_strings_are_served_by_tensorflow_alone(kind, tmp_path):
  tokens = [*vocab_lib.SPECIAL_TOKENS, *_VOCABULARIES[kind]]
  vocab_file = tmp_path / "vocab.txt"
  vocab_file.write_text("\n".join(tokens))
  encoder = registry.bert(
    {
      "vocab_size": len(tokens),
      "hidden_size": 6,
      "num_layers": 1,
      "num_attention_heads": 3,
      "intermediate_size": 10,
      "max_position_embeddings": _LENGTH,
    }
  )
  network = encoder.build()
  serving.write_encoder(
    tmp_path / "out",
    checkpoint_files.LoadedEncoder(network, encoder, vocab_file),
  )
  vocab_file.unlink()  # The one inside must do.
  outputs = samples.serve_alone(tmp_path / "out", {"text": _TEXTS})

  rows = _ids(vocab_lib.Vocabulary(tuple(tokens)), kind)
  rows = [[*row[:-1][: _LENGTH - 1], row[-1]] for row in rows]
  assert max(map(len, rows)) == _LENGTH, "one text is cut"
  for row, ids, mask, pooled in zip(
    rows,
    outputs["input_word_ids"],
    outputs["input_mask"],
    outputs["pooled_output"],
    strict=True,
  ):
    padding = [0] * (_LENGTH - len(row))
    assert ids == [*row, *padding]
    assert mask == [*([1] * len(row)), *padding]
    alone = network(
      {
        "input_word_ids": tf.constant([row]),
        "input_mask": tf.ones([1, len(row)], tf.int32),
        "input_type_ids": tf.zeros([1, len(row)], tf.int32),
      }
    )
    np.testing.assert_allclose(pooled, alone["pooled_output"][0], atol=1e-5)
