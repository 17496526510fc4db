"""A SavedModel reads raw strings where only TensorFlow is imported."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.convert import saved_model_export
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry

_TEXTS = ["It is a cat.", "Été", "", "a cat " * 9]
_LENGTH = 12
_VOCABULARIES = {
  "lower_case": ["a", "it", "is", "cat", "##s", "e", "##t", "##e", "."],
  "cased": ["It", "is", "a", "cat", ".", "E"],
  "characters": [" ", *"abcdefghist."],
}

_SERVE = """
import json, sys
import tensorflow as tf
import tensorflow_text

path, texts = json.load(sys.stdin)
serve = tf.saved_model.load(path).signatures["serving_default"]
outputs = serve(text=tf.constant(texts))
ours = {"swe_tf", "official"} & {name.split(".")[0] for name in sys.modules}
arrays = {name: value.numpy().tolist() for name, value in outputs.items()}
print(json.dumps([sorted(ours), arrays]))
"""


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


@pytest.mark.parametrize("kind", list(_VOCABULARIES))
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
  saved_model_export.write_saved_model(
    tmp_path / "out",
    checkpoint_files.LoadedEncoder(network, encoder, vocab_file),
  )
  vocab_file.unlink()  # The one inside must do.
  done = subprocess.run(
    [sys.executable, "-c", _SERVE],
    input=json.dumps([str(tmp_path / "out"), _TEXTS]),
    cwd=tmp_path,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-2000:]
  imported, outputs = json.loads(done.stdout)
  assert not imported

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
