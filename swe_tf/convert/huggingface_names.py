"""How Hugging Face's BERT and Model Garden's name and shape the same weights.

A table for both directions. Hugging Face keeps a dense kernel as `[out, in]`;
Model Garden keeps it as `[in, out]`, in attention with the heads as an axis of
their own. Post-LN only: Hugging Face's BERT has no other.
"""

import math
import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras

# Hugging Face's modules on the left, Model Garden's layers on the right.
_EMBEDDINGS = {
  "embeddings.word_embeddings": "word_embeddings",
  "embeddings.position_embeddings": "position_embedding",
  "embeddings.token_type_embeddings": "type_embeddings",
}
_NORMS = {"embeddings.LayerNorm": "embeddings/layer_norm"}
_KERNELS = {"pooler.dense": "pooler_transform"}
_LAYER_KERNELS = {
  "attention.self.query": "self_attention/query",
  "attention.self.key": "self_attention/key",
  "attention.self.value": "self_attention/value",
  "attention.output.dense": "self_attention/attention_output",
  "intermediate.dense": "intermediate",
  "output.dense": "output",
}
_LAYER_NORMS = {
  "attention.output.LayerNorm": "self_attention_layer_norm",
  "output.LayerNorm": "output_layer_norm",
}

# Keras puts the name of the encoder, which is anything, before these.
_VARIABLE_NAME = re.compile(
  r"(?:^|/)((?:word_embeddings|position_embedding|type_embeddings|"
  r"embeddings/layer_norm|transformer/layer_\d+|pooler_transform)/.+):0$"
)


class Weight(NamedTuple):
  """One weight in both layouts.

  Attributes:
    name: Hugging Face's name.
    shape: Hugging Face's shape.
    variable: Model Garden's variable.
    transposed: Whether it is a kernel.
  """

  name: str
  shape: tuple[int, ...]
  variable: tf.Variable
  transposed: bool

  def from_huggingface(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of `shape` in the shape of the variable."""
    value = value.T if self.transposed else value
    return value.reshape(self.variable.shape)

  def to_huggingface(self) -> np.ndarray:
    """Returns the variable's value in `shape`."""
    value = self.variable.numpy()
    if self.transposed:
      return np.ascontiguousarray(value.reshape(self.shape[::-1]).T)
    return value.reshape(self.shape)


def encoder_weights(
  encoder: tf_keras.layers.Layer, num_layers: int
) -> list[Weight]:
  """Returns all weights of a Model Garden BERT encoder in both layouts.

  Raises:
    ValueError: If the encoder has a weight that Hugging Face's BERT lacks, or
      the other way round.
  """
  variables = {}
  for variable in encoder.trainable_variables:
    match = _VARIABLE_NAME.search(variable.name)
    if not match:
      raise ValueError(f"Hugging Face's BERT has no place for {variable.name}.")
    variables[match.group(1)] = variable

  weights = []

  def add(name, variable_name, transposed=False):
    if variable_name not in variables:
      raise ValueError(f"The encoder has no {variable_name}.")
    variable = variables.pop(variable_name)
    shape = tuple(variable.shape)
    if transposed:
      # Attention's output has two input axes, heads and width; others one.
      axes = 2 if variable_name.endswith("attention_output/kernel") else 1
      shape = (math.prod(shape[axes:]), math.prod(shape[:axes]))
    elif name.endswith("bias"):
      shape = (math.prod(shape),)
    weights.append(Weight(name, shape, variable, transposed))

  def add_all(norms, kernels, theirs="", ours=""):
    for name, layer in norms.items():
      add(f"{theirs}{name}.weight", f"{ours}{layer}/gamma")
      add(f"{theirs}{name}.bias", f"{ours}{layer}/beta")
    for name, layer in kernels.items():
      add(f"{theirs}{name}.weight", f"{ours}{layer}/kernel", True)
      add(f"{theirs}{name}.bias", f"{ours}{layer}/bias")

  for name, layer in _EMBEDDINGS.items():
    add(f"{name}.weight", f"{layer}/embeddings")
  add_all(_NORMS, _KERNELS)
  for i in range(num_layers):
    prefixes = f"encoder.layer.{i}.", f"transformer/layer_{i}/"
    add_all(_LAYER_NORMS, _LAYER_KERNELS, *prefixes)
  if variables:
    raise ValueError(
      f"Hugging Face's BERT has no place for {', '.join(variables)}."
    )
  return weights
