"""How Hugging Face's BERT and Model Garden's name and shape the same weights.

A table for both directions. Hugging Face stores a dense kernel as `[out, in]`.
Model Garden stores it as `[in, out]`; in attention, the heads have an axis of
their own. Hugging Face's BERT is Post-LN; its `RobertaPreLayerNorm` is BERT
with Pre-LN blocks and a final layer norm, and counts positions from 1. Imports
no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import math
import re
from typing import Any, NamedTuple

import numpy as np

# Hugging Face's modules on the left, Model Garden's layers on the right.
_MODULES = {
  "embeddings.word_embeddings": "word_embeddings",
  "embeddings.position_embeddings": "position_embedding",
  "embeddings.token_type_embeddings": "type_embeddings",
  "embeddings.LayerNorm": "embeddings/layer_norm",
  "pooler.dense": "pooler_transform",
}
_BLOCK_MODULES = {
  "attention.self.query": "self_attention/query",
  "attention.self.key": "self_attention/key",
  "attention.self.value": "self_attention/value",
  "attention.output.dense": "self_attention/attention_output",
  "intermediate.dense": "intermediate",
  "output.dense": "output",
}
# The same for the variables of a layer.
_PARTS = {
  "embeddings": "weight",
  "kernel": "weight",
  "bias": "bias",
  "gamma": "weight",
  "beta": "bias",
}


@dataclasses.dataclass(frozen=True)
class Layout:
  """How Hugging Face's architectures differ.

  Attributes:
    model_type: Its name in `config.json`.
    architecture: The start of its classes' names.
    prefix: Precedes the names of the encoder's weights if there is a head.
    norms: The layer norms that only this architecture has outside of a block.
    block_norms: The layer norms of a block.
    first_position: The first token's row in the table of positions.
    head_norm: The layer norm of the language-model head.
    head_kernel: Its dense layer.
    head_bias: Its output's bias.
  """

  model_type: str
  architecture: str
  prefix: str
  norms: Mapping[str, str]
  block_norms: Mapping[str, str]
  first_position: int
  head_norm: str
  head_kernel: str
  head_bias: str


POST_LN = Layout(
  model_type="bert",
  architecture="Bert",
  prefix="bert.",
  norms={},
  block_norms={
    "attention.output.LayerNorm": "self_attention_layer_norm",
    "output.LayerNorm": "output_layer_norm",
  },
  first_position=0,
  head_norm="cls.predictions.transform.LayerNorm",
  head_kernel="cls.predictions.transform.dense",
  head_bias="cls.predictions.bias",
)
PRE_LN = Layout(
  model_type="roberta-prelayernorm",
  architecture="RobertaPreLayerNorm",
  prefix="roberta_prelayernorm.",
  norms={"LayerNorm": "final_layer_norm"},
  block_norms={
    "attention.LayerNorm": "self_attention_layer_norm",
    "intermediate.LayerNorm": "output_layer_norm",
  },
  first_position=1,  # Row 0 is for padding, which is token 0 in BERT.
  head_norm="lm_head.layer_norm",
  head_kernel="lm_head.dense",
  head_bias="lm_head.bias",
)
LAYOUTS = {layout.model_type: layout for layout in (POST_LN, PRE_LN)}

# Keras puts the name of the encoder, which can be anything, before these.
_VARIABLE_NAME = re.compile(
  r"(?:^|/)((?:word_embeddings|position_embedding|type_embeddings|"
  r"embeddings/layer_norm|transformer/layer_\d+|final_layer_norm|"
  r"pooler_transform)/.+):0$"
)


class Weight(NamedTuple):
  """One weight in both layouts.

  Attributes:
    name: Hugging Face's name.
    shape: Hugging Face's shape.
    variable: Model Garden's variable.
    transposed: Whether it is a kernel.
    first_row: The row of Hugging Face's that is our first.
  """

  name: str
  shape: tuple[int, ...]
  variable: Any
  transposed: bool = False
  first_row: int = 0

  def from_huggingface(self, value: np.ndarray) -> np.ndarray:
    """Converts a value of `shape` to the shape of the variable."""
    value = value.T if self.transposed else value[self.first_row :]
    return value.reshape(self.variable.shape)

  def to_huggingface(self) -> np.ndarray:
    """Converts the variable's value to `shape`."""
    value = self.variable.numpy()
    if self.transposed:
      return np.ascontiguousarray(value.reshape(self.shape[::-1]).T)
    if self.first_row:
      value = np.pad(value, [(self.first_row, 0), (0, 0)])
    return value.reshape(self.shape)


def layout_of(encoder: Any) -> Layout:
  """Returns Hugging Face's architecture for a Model Garden BERT encoder.

  Raises:
    ValueError: If it is Pre-LN without the final layer norm, or causal.
  """
  config = encoder.get_config()
  if not config["norm_first"]:
    return POST_LN
  if not hasattr(encoder, "final_layer_norm"):
    raise ValueError(
      "The encoder is Pre-LN without a final layer norm, which Hugging Face's "
      "Pre-LN encoder has; an encoder with encoder.type=any has one, too."
    )
  if config.get("causal"):
    raise ValueError(
      "The encoder is causal, but Hugging Face's masked language models see "
      "all tokens."
    )
  return PRE_LN


def head_weights(head: Any, layout: Layout) -> list[Weight]:
  """Returns all weights of a Model Garden `MaskedLM` head in both layouts.

  In both, the embedding table is the encoder's.
  """
  kernel = head.dense.kernel
  vectors = {
    f"{layout.head_kernel}.bias": head.dense.bias,
    f"{layout.head_norm}.weight": head.layer_norm.gamma,
    f"{layout.head_norm}.bias": head.layer_norm.beta,
    layout.head_bias: head.bias,
  }
  return [
    Weight(f"{layout.head_kernel}.weight", tuple(kernel.shape), kernel, True),
    *(Weight(name, tuple(v.shape), v) for name, v in vectors.items()),
  ]


def encoder_weights(encoder: Any, num_layers: int) -> list[Weight]:
  """Returns all weights of a Model Garden BERT encoder in both layouts.

  Raises:
    ValueError: If the encoder has a weight that Hugging Face's BERT lacks, or
      the other way round.
  """
  layout = layout_of(encoder)
  outside = {**_MODULES, **layout.norms}
  modules = {ours: theirs for theirs, ours in outside.items()}
  for i in range(num_layers):
    for theirs, ours in {**_BLOCK_MODULES, **layout.block_norms}.items():
      modules[f"transformer/layer_{i}/{ours}"] = f"encoder.layer.{i}.{theirs}"
  weights = []
  found = set()
  for variable in encoder.trainable_variables:
    match = _VARIABLE_NAME.search(variable.name)
    layer, _, part = match[1].rpartition("/") if match else ("", "", "")
    if layer not in modules:
      raise ValueError(f"Hugging Face's BERT has no place for {variable.name}.")
    found.add(layer)
    shape, first_row = tuple(variable.shape), 0
    if part == "kernel":
      # Attention's output has two input axes, heads and width; others have one.
      axes = 2 if layer.endswith("attention_output") else 1
      shape = (math.prod(shape[axes:]), math.prod(shape[:axes]))
    elif part == "bias":
      shape = (math.prod(shape),)
    elif layer == "position_embedding":
      first_row = layout.first_position
      shape = (shape[0] + first_row, shape[1])
    name = f"{modules[layer]}.{_PARTS[part]}"
    weights.append(Weight(name, shape, variable, part == "kernel", first_row))
  for layer in modules:
    if layer not in found:
      raise ValueError(f"The encoder has no {layer}.")
  return weights
