"""A small encoder with random weights, and inputs for it."""

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
