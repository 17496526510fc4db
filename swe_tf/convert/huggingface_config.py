"""How Hugging Face's BERT and Model Garden's name and shape the same things.

Hugging Face stores a dense kernel as `[out, in]`, Model Garden as `[in, out]`;
in attention, the heads have an axis of their own. Hugging Face's BERT is
Post-LN; its `RobertaPreLayerNorm` is BERT with Pre-LN blocks and a final layer
norm, and counts positions from 1. Imports no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from swe_tf import errors
from swe_tf import files
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import registry
from swe_tf.modeling import sizes

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"

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
# Hugging Face's names to Model Garden's, whose `gelu` approximates by tanh.
ACTIVATIONS = {
  "gelu": "swe_tf>exact_gelu",  # From `modeling.encoder`.
  "gelu_new": "gelu",
  "gelu_pytorch_tanh": "gelu",
  "relu": "relu",
}
# Fields of both configs.
_SIZES = {
  name.replace("num_layers", "num_hidden_layers"): name
  for name in registry.SIZES
}
_RATES = {
  "hidden_dropout_prob": ("dropout_rate", 0.1),
  "attention_probs_dropout_prob": ("attention_dropout_rate", 0.1),
  "initializer_range": ("initializer_range", 0.02),
}
# Fixed in Model Garden's encoder: no config can change it.
_LAYER_NORM_EPSILON = 1e-12


@dataclasses.dataclass(frozen=True)
class Layout:
  """How Hugging Face's architectures differ."""

  model_type: str
  architecture: str  # The start of its classes' names.
  prefix: str  # Of the encoder's weights if there is a head.
  norms: Mapping[str, str]  # Those that only this one has outside of a block.
  block_norms: Mapping[str, str]
  first_position: int  # The first token's row in the table of positions.
  head_norm: str  # Of the language-model head, as the other two.
  head_kernel: str
  head_bias: str
  classifier_inner: str  # Of the classification head, as the next.
  classifier_output: str


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
  classifier_inner="bert.pooler.dense",
  classifier_output="classifier",
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
  classifier_inner="classifier.dense",
  classifier_output="classifier.out_proj",
)
LAYOUTS = {layout.model_type: layout for layout in (POST_LN, PRE_LN)}


class Weight(NamedTuple):
  """One weight in both layouts: Hugging Face's name and shape, our variable."""

  name: str
  shape: tuple[int, ...]
  variable: Any
  is_kernel: bool = False
  first_row: int = 0  # The row of Hugging Face's that is our first.

  def from_huggingface(self, value: np.ndarray) -> np.ndarray:
    """Converts a value of `shape` to the shape of the variable."""
    value = value.T if self.is_kernel else value[self.first_row :]
    return value.reshape(self.variable.shape)

  def to_huggingface(self) -> np.ndarray:
    """Converts the variable's value to `shape`."""
    value = self.variable.numpy()
    if self.is_kernel:
      return np.ascontiguousarray(value.reshape(self.shape[::-1]).T)
    if self.first_row:
      value = np.pad(value, [(self.first_row, 0), (0, 0)])
    return value.reshape(self.shape)


def layout_of(encoder: Any) -> Layout:
  """Returns Hugging Face's architecture for a Model Garden BERT encoder."""
  config = encoder.get_config()
  if not config["norm_first"]:
    return POST_LN
  if not hasattr(encoder, "final_layer_norm"):
    raise errors.UsageError(
      "The encoder is Pre-LN without a final layer norm, which Hugging Face's "
      "Pre-LN encoder has; an encoder with encoder.type=any has one, too."
    )
  return PRE_LN


def head_weights(head: Any, layout: Layout) -> list[Weight]:
  """Returns all weights of a Model Garden `MaskedLM` head in both layouts."""
  kernel = head.dense.kernel  # The embedding table is the encoder's.
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
  """Returns all weights of a Model Garden BERT encoder in both layouts."""
  layout = layout_of(encoder)
  outside = {**_MODULES, **layout.norms}
  modules = {ours: theirs for theirs, ours in outside.items()}
  for i in range(num_layers):
    for theirs, ours in {**_BLOCK_MODULES, **layout.block_norms}.items():
      modules[f"transformer/layer_{i}/{ours}"] = f"encoder.layer.{i}.{theirs}"
  weights = []
  missing = dict(modules)
  for variable in encoder.trainable_variables:
    path, _, part = f"/{variable.name.removesuffix(':0')}".rpartition("/")
    # Keras puts the name of the encoder, which can be anything, before it.
    layer = next((name for name in modules if path.endswith(f"/{name}")), None)
    if layer is None:
      raise errors.UsageError(
        f"Hugging Face's BERT has no place for {variable.name}."
      )
    missing.pop(layer, None)
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
    name = (
      f"{modules[layer]}.{'bias' if part in ('bias', 'beta') else 'weight'}"
    )
    weights.append(Weight(name, shape, variable, part == "kernel", first_row))
  if missing:
    raise errors.UsageError(f"The encoder has no {next(iter(missing))}.")
  return weights


def read(input_dir: files.PathLike) -> dict[str, Any]:
  """Checks the files of a directory and returns its `BertEncoderConfig`."""
  directory = files.as_path(input_dir)
  params = encoder_params(directory / CONFIG)
  vocab_file = directory / VOCABULARY
  tokens = len(vocab_lib.Vocabulary.load(vocab_file))
  if tokens > params["vocab_size"]:
    raise errors.UsageError(
      f"{vocab_file} has {tokens} tokens, but vocab_size is "
      f"{params['vocab_size']} in {CONFIG}; the files do not belong together."
    )
  if not (directory / WEIGHTS).is_file():
    raise errors.UsageError(
      f"there is no {directory / WEIGHTS}; a PyTorch file has to be saved as "
      "one safetensors file first."
    )
  return params


def encoder_params(path: files.PathLike) -> dict[str, Any]:
  """Returns the `BertEncoderConfig` that a `config.json` describes."""
  config = files.read_object(path)

  def insist(key, allowed, default=None):
    value = config.get(key, default)
    if value not in allowed:
      raise errors.UsageError(
        f"{path}: {key} is {value!r}, but only "
        f"{' or '.join(map(str, allowed))} can be imported."
      )
    return value

  layout = LAYOUTS[insist("model_type", tuple(LAYOUTS))]
  insist("position_embedding_type", ("absolute",), "absolute")
  insist("is_decoder", (False,), False)
  insist("layer_norm_eps", (_LAYER_NORM_EPSILON,), _LAYER_NORM_EPSILON)
  activation = insist("hidden_act", tuple(ACTIVATIONS), "gelu")
  params: dict[str, Any] = {}
  for key, ours in _SIZES.items():
    value = config.get(key)
    if type(value) is not int or value < 1:
      raise errors.UsageError(
        f"{path}: {key} is {value!r}, but a positive number is needed."
      )
    params[ours] = value
  if params["hidden_size"] % params["num_attention_heads"]:
    raise errors.UsageError(
      f"{path}: hidden_size ({params['hidden_size']}) is not a multiple of "
      f"num_attention_heads ({params['num_attention_heads']})."
    )
  if layout.first_position:
    insist("pad_token_id", (0,), 1)  # It decides where positions begin.
    params["max_position_embeddings"] -= layout.first_position
  for key, (ours, default) in _RATES.items():
    value = config.get(key, default)
    if type(value) not in (int, float) or not 0 <= value < 1:
      raise errors.UsageError(
        f"{path}: {key} is {value!r}, but a number from 0 to 1 is needed."
      )
    params[ours] = value
  return {
    **params,
    "hidden_activation": ACTIVATIONS[activation],
    "norm_first": layout is PRE_LN,
  }


def least_parameters(params: Mapping[str, Any]) -> int:
  """Returns how many weights the embeddings and blocks of an encoder have."""
  size = sizes.Size(
    *(params[field.name] for field in dataclasses.fields(sizes.Size))
  )
  rows = ("vocab_size", "max_position_embeddings", "type_vocab_size")
  embeddings = size.hidden_size * sum(params[name] for name in rows)
  return embeddings + size.num_layers * sizes.block_parameter_count(size)


def from_encoder(params: Any, layout: Layout) -> dict[str, Any]:
  """Returns the content of `config.json` for a `BertEncoderConfig`."""
  activation = params.hidden_activation
  # Where several of their names map to one of ours, the first is taken.
  names = [name for name, ours in ACTIVATIONS.items() if ours == activation]
  if not names:
    raise errors.UsageError(
      f"Hugging Face's BERT has no name for hidden_activation {activation!r}."
    )
  config = {
    "architectures": [f"{layout.architecture}Model"],
    "model_type": layout.model_type,
    **{key: getattr(params, ours) for key, ours in _SIZES.items()},
    "hidden_act": names[0],
    **{key: getattr(params, ours) for key, (ours, _) in _RATES.items()},
    "layer_norm_eps": _LAYER_NORM_EPSILON,
    "position_embedding_type": "absolute",
    "pad_token_id": 0,
  }
  config["max_position_embeddings"] += layout.first_position
  return config
