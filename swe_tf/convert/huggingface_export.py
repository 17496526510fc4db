"""Writes a BERT encoder in Hugging Face's layout: the inverse of the import.

Writes `config.json`, `model.safetensors`, and what its tokenizer needs. Post-LN
becomes `Bert`, Pre-LN with the final layer norm `RobertaPreLayerNorm`. Neither
can hold an encoder with a different embedding width.
"""

import pathlib
from typing import Any, NamedTuple

from absl import logging
from safetensors import numpy as safetensors_numpy
import tensorflow as tf
import tf_keras

from official.modeling import tf_utils
from official.nlp.modeling import layers
from swe_tf import errors
from swe_tf import files
from swe_tf.convert import huggingface_config
from swe_tf.convert import huggingface_names
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files

# Model Garden's default, of the blocks and of the head.
_DEFAULT_ACTIVATION = "gelu"

_PAD = 0
_HEAD_KERNEL = "masked_lm/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"

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


class LanguageHead(NamedTuple):
  """The head of a masked language model.

  Attributes:
    layer: Model Garden's `MaskedLM`, with its weights.
    activation: The name of its activation in the config.
  """

  layer: tf_keras.layers.Layer
  activation: str


def read_head(
  loaded: checkpoint_files.LoadedEncoder, checkpoint: str
) -> LanguageHead | None:
  """Returns the head that an encoder was pre-trained with, if there is one.

  Args:
    loaded: The encoder.
    checkpoint: The checkpoint it was read from, or a directory with it.
  """
  path = checkpoint_files.find(checkpoint)
  shapes = checkpoint_files.reader(path).get_variable_to_shape_map()
  if _HEAD_KERNEL not in shapes:
    return None
  model = loaded.encoder.task["model"]
  name = model.get("mlm_activation") or _DEFAULT_ACTIVATION
  head = layers.MaskedLM(
    loaded.network.get_embedding_table(),
    activation=tf_utils.get_activation(name),
  )
  # Called once to make its weights, which are then read.
  width = shapes[_HEAD_KERNEL][0]
  head(tf.zeros([1, 1, width]), tf.zeros([1, 1], tf.int32))
  what = "the language-model head of its config"
  checkpoint_files.read_into(path, what, masked_lm=head)
  return LanguageHead(head, name)


def write_huggingface(
  output_dir: pathlib.Path,
  loaded: checkpoint_files.LoadedEncoder,
  head: LanguageHead | None = None,
) -> None:
  """Writes an encoder, with its language-model head if Hugging Face has one.

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
  if head is not None and _fits(head, layout, config):
    tensors = {layout.prefix + name: value for name, value in tensors.items()}
    for weight in huggingface_names.head_weights(head.layer, layout):
      tensors[weight.name] = weight.to_huggingface()
    config["architectures"] = [f"{layout.architecture}ForMaskedLM"]
    if layout is huggingface_names.PRE_LN and head.activation == _TANH:
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
  checkpoint_files.write_vocabulary(output_dir, loaded)
  if vocabulary is not None:
    files.write_json(
      output_dir / "tokenizer_config.json",
      {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": vocabulary.is_lower_case,
        "model_max_length": loaded.network.get_config()["max_sequence_length"],
      },
    )


def _fits(
  head: LanguageHead, layout: huggingface_names.Layout, config: dict[str, Any]
) -> bool:
  """Whether Hugging Face can hold a head; if not, says why."""
  fitting: tuple[str, ...] = ("gelu", "gelu_new")
  if layout is huggingface_names.POST_LN:
    fitting = (config["hidden_act"],)  # Its head has the blocks' activation.
  if huggingface_config.name_of(head.activation) in fitting:
    return True
  logging.warning(
    "The language-model head is left out: its activation is %r, and Hugging "
    "Face's %sForMaskedLM has %s here.",
    head.activation,
    layout.architecture,
    " or ".join(fitting),
  )
  return False


def _config(
  loaded: checkpoint_files.LoadedEncoder, layout: huggingface_names.Layout
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
