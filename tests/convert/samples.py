"""A small encoder with random weights, inputs for it, and serving alone."""

import json
import subprocess
import sys

import numpy as np

from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry

PARAMS = {
  "vocab_size": 11,
  "hidden_size": 6,
  "num_layers": 2,
  "num_attention_heads": 3,
  "intermediate_size": 10,
  "max_position_embeddings": 7,
  "type_vocab_size": 2,
  "hidden_activation": "gelu",
  "norm_first": False,
}
INPUTS = {
  "input_word_ids": np.array([[2, 5, 6, 3, 0]], np.int32),
  "input_mask": np.array([[1, 1, 1, 1, 0]], np.int32),
  "input_type_ids": np.array([[0, 0, 1, 1, 0]], np.int32),
}


def encoder(folder, kind="bert", **params):
  vocab = folder / "vocab.txt"
  vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
  made = registry.bert({**PARAMS, **params}, kind)
  network = made.build()
  rng = np.random.default_rng(0)
  for variable in network.trainable_variables:
    variable.assign(rng.normal(size=variable.shape))
  return checkpoint_files.LoadedEncoder(network, made, vocab)


def output(loaded):
  return loaded.network(INPUTS)["sequence_output"].numpy()


_SERVE = """
import json, sys
import tensorflow as tf
import tensorflow_text

path, texts = json.load(sys.stdin)
serve = tf.saved_model.load(path).signatures["serving_default"]
outputs = serve(**{name: tf.constant(each) for name, each in texts.items()})
assert not {"swe_tf", "official"} & {n.split(".")[0] for n in sys.modules}
found = {name: value.numpy().tolist() for name, value in outputs.items()}
print(json.dumps(found, default=bytes.decode))
"""


def serve_alone(path, texts):
  """Serves texts with a SavedModel where only TensorFlow is imported."""
  done = subprocess.run(
    [sys.executable, "-c", _SERVE],
    input=json.dumps([str(path), texts]),
    cwd=path,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-2000:]
  return json.loads(done.stdout)
