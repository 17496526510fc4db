"""Checks the files of a BERT in Hugging Face's layout and reads its config.

Imports no TensorFlow, so that an error is reported at once;
`huggingface_import` reads the weights.
"""

from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.convert import huggingface_names
from swe_tf.data.text import vocab as vocab_lib

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"

# Hugging Face's names to Model Garden's, whose `gelu` approximates by tanh.
ACTIVATIONS = {
  "gelu": "swe_tf>exact_gelu",  # From `modeling.encoder`.
  "gelu_new": "gelu",
  "gelu_pytorch_tanh": "gelu",
  "relu": "relu",
}

# In both configs; only the number of layers has two names.
_SIZES = (
  "vocab_size",
  "hidden_size",
  "num_hidden_layers",
  "num_attention_heads",
  "intermediate_size",
  "max_position_embeddings",
  "type_vocab_size",
)

# Fixed in Model Garden's encoder: no config can change it.
LAYER_NORM_EPSILON = 1e-12


def name_of(activation: str) -> str | None:
  """Returns Hugging Face's name of an activation, or None if it has none."""
  # Where several of their names map to one of ours, the first is taken.
  return next((k for k, v in ACTIVATIONS.items() if v == activation), None)


def read(input_dir: files.PathLike) -> dict[str, Any]:
  """Checks the files of a directory and returns its `BertEncoderConfig`.

  Raises:
    UsageError: If a file is missing, the files do not belong together, or Model
      Garden has no such BERT encoder.
  """
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
      "safetensors first."
    )
  return params


def encoder_params(path: files.PathLike) -> dict[str, Any]:
  """Returns the `BertEncoderConfig` that a `config.json` describes.

  Raises:
    UsageError: If Model Garden has no such BERT encoder.
  """
  config = files.read_json(path)
  if not isinstance(config, dict):
    raise errors.UsageError(f"{path}:1: not a JSON object.")

  def insist(key, allowed, default=None):
    value = config.get(key, default)
    if value not in allowed:
      raise errors.UsageError(
        f"{path}: {key} is {value!r}, but only "
        f"{' or '.join(map(str, allowed))} can be imported."
      )
    return value

  model_type = insist("model_type", tuple(huggingface_names.LAYOUTS))
  layout = huggingface_names.LAYOUTS[model_type]
  insist("position_embedding_type", ("absolute",), "absolute")
  insist("is_decoder", (False,), False)
  insist("layer_norm_eps", (LAYER_NORM_EPSILON,), LAYER_NORM_EPSILON)
  activation = insist("hidden_act", tuple(ACTIVATIONS), "gelu")
  params = {}
  for key in _SIZES:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
      raise errors.UsageError(
        f"{path}: {key} is {value!r}, but a positive number is needed."
      )
    params[key.replace("num_hidden_layers", "num_layers")] = value
  if params["hidden_size"] % params["num_attention_heads"]:
    raise errors.UsageError(
      f"{path}: hidden_size ({params['hidden_size']}) is not a multiple of "
      f"num_attention_heads ({params['num_attention_heads']})."
    )
  if layout.first_position:
    insist("pad_token_id", (0,), 1)  # It decides where positions begin.
    params["max_position_embeddings"] -= layout.first_position
  return {
    **params,
    "hidden_activation": ACTIVATIONS[activation],
    "dropout_rate": config.get("hidden_dropout_prob", 0.1),
    "attention_dropout_rate": config.get("attention_probs_dropout_prob", 0.1),
    "initializer_range": config.get("initializer_range", 0.02),
    "norm_first": layout is huggingface_names.PRE_LN,
  }
