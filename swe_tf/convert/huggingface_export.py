"""Writes a BERT encoder in Hugging Face's layout: the inverse of the import.

Writes `config.json`, `model.safetensors`, and what its tokenizer needs. Post-LN
becomes `Bert`, Pre-LN with the final layer norm `RobertaPreLayerNorm`. Neither
can hold an encoder with a different embedding width.
"""

import pathlib
from typing import Any

from absl import logging
from safetensors import numpy as safetensors_numpy
import tf_keras

from swe_tf import errors
from swe_tf import files
from swe_tf.convert import huggingface_config
from swe_tf.convert import huggingface_names
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import encoder_files

# Model Garden's default.
_DEFAULT_ACTIVATION = "gelu"

_PAD = 0

# RobertaPreLayerNorm's head uses the exact GELU, whatever config.json says.
_TANH = huggingface_config.ACTIVATIONS["gelu_new"]
_HEAD_MODULE, _HEAD_CLASS = "modeling_pre_ln_bert", "PreLnBertForMaskedLM"
_HEAD_CODE = f'''"""RobertaPreLayerNorm with the GELU of its training."""

from torch.nn import functional
from transformers import RobertaPreLayerNormForMaskedLM


class {_HEAD_CLASS}(RobertaPreLayerNormForMaskedLM):
  """Approximates GELU by tanh in the language-model head, too."""

  def __init__(self, config):
    super().__init__(config)
    head = self.lm_head

    def forward(features, **kwargs):
      del kwargs
      hidden = functional.gelu(head.dense(features), approximate="tanh")
      return head.decoder(head.layer_norm(hidden))

    head.forward = forward
'''


def write_huggingface(
  output_dir: pathlib.Path, loaded: encoder_files.LoadedEncoder
) -> None:
  """Writes an encoder, with its language-model head if there is one.

  Raises:
    UsageError: If Hugging Face has no such architecture.
  """
  try:
    layout = huggingface_names.layout_of(loaded.network)
    config = _config(loaded, layout)
    weights = huggingface_names.encoder_weights(
      loaded.network, config["num_hidden_layers"]
    )
  except ValueError as error:
    raise errors.UsageError(str(error)) from error
  vocabulary = None
  if loaded.vocab_file:
    vocabulary = vocab_lib.Vocabulary.load(loaded.vocab_file)
    if vocabulary.id_of("[PAD]") != _PAD:
      raise errors.UsageError(
        f"{loaded.vocab_file} has [PAD] on line "
        f"{vocabulary.id_of('[PAD]') + 1}, but Hugging Face's BERT uses the "
        "first token for padding."
      )
  tensors = {weight.name: weight.to_huggingface() for weight in weights}
  head = _fitting_head(loaded, layout, config)
  if head is not None:
    tensors = {layout.prefix + name: value for name, value in tensors.items()}
    for weight in huggingface_names.head_weights(head, layout):
      tensors[weight.name] = weight.to_huggingface()
    config["architectures"] = [f"{layout.architecture}ForMaskedLM"]
    assert loaded.head is not None  # `head` is its layer.
    if layout is huggingface_names.PRE_LN and loaded.head.activation == _TANH:
      config["auto_map"] = {
        "AutoModelForMaskedLM": f"{_HEAD_MODULE}.{_HEAD_CLASS}"
      }
      files.write_text(output_dir / f"{_HEAD_MODULE}.py", _HEAD_CODE)
  with files.complete_or_absent(output_dir / "model.safetensors") as scratch:
    safetensors_numpy.save_file(
      tensors,
      scratch,
      metadata={"format": "pt"},  # transformers looks for this.
    )
  files.write_json(output_dir / "config.json", config)
  encoder_files.write_vocabulary(output_dir, loaded)
  if vocabulary is not None:
    files.write_json(
      output_dir / "tokenizer_config.json",
      {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": vocabulary.is_lower_case,
        "model_max_length": loaded.network.get_config()["max_sequence_length"],
      },
    )


def _fitting_head(
  loaded: encoder_files.LoadedEncoder,
  layout: huggingface_names.Layout,
  config: dict[str, Any],
) -> tf_keras.layers.Layer | None:
  """Returns the head, or None if there is none that Hugging Face can hold."""
  if loaded.head is None:
    return None
  fitting: tuple[str, ...] = ("gelu", "gelu_new")
  if layout is huggingface_names.POST_LN:
    fitting = (config["hidden_act"],)
  if huggingface_config.name_of(loaded.head.activation) in fitting:
    return loaded.head.layer
  logging.warning(
    "The language-model head is left out: its activation is %r, and Hugging "
    "Face's %sForMaskedLM has %s here.",
    loaded.head.activation,
    layout.architecture,
    " or ".join(fitting),
  )
  return None


def _config(
  loaded: encoder_files.LoadedEncoder, layout: huggingface_names.Layout
) -> dict[str, Any]:
  """Returns the content of `config.json`."""
  built = loaded.network.get_config()
  name = loaded.encoder.params.get("hidden_activation", _DEFAULT_ACTIVATION)
  activation = huggingface_config.name_of(name)
  if activation is None:
    raise errors.UsageError(
      f"Hugging Face's BERT has no name for hidden_activation {name!r}."
    )
  return {
    "architectures": [f"{layout.architecture}Model"],
    "model_type": layout.model_type,
    "vocab_size": built["vocab_size"],
    "hidden_size": built["hidden_size"],
    "num_hidden_layers": built["num_layers"],
    "num_attention_heads": built["num_attention_heads"],
    "intermediate_size": built["inner_dim"],
    "max_position_embeddings": (
      built["max_sequence_length"] + layout.first_position
    ),
    "type_vocab_size": built["type_vocab_size"],
    "hidden_act": activation,
    "hidden_dropout_prob": built["output_dropout"],
    "attention_probs_dropout_prob": built["attention_dropout"],
    "initializer_range": loaded.encoder.params.get("initializer_range", 0.02),
    "layer_norm_eps": huggingface_config.LAYER_NORM_EPSILON,
    "position_embedding_type": "absolute",
    "pad_token_id": _PAD,
  }
