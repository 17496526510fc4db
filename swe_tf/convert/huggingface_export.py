"""A Post-LN BERT encoder to Hugging Face's layout: the inverse of the import.

Writes `config.json`, `model.safetensors` and `vocab.txt`. Pre-LN encoders, and
those with another embedding width, have no place in Hugging Face's BERT.
"""

import pathlib
from typing import Any

from safetensors import numpy as safetensors_numpy

from swe_tf import errors
from swe_tf import files
from swe_tf.convert import huggingface_config
from swe_tf.convert import huggingface_names
from swe_tf.modeling import encoder_files

# What Model Garden takes if a config does not say.
_DEFAULT_ACTIVATION = "gelu"


def write_huggingface(
  output_dir: pathlib.Path, loaded: encoder_files.LoadedEncoder
) -> None:
  """Writes an encoder; raises `UsageError` if it is not Hugging Face's BERT."""
  if loaded.network.get_config()["norm_first"]:
    raise errors.UsageError(
      "the encoder is Pre-LN, but Hugging Face's BERT is Post-LN and has no "
      "final layer norm; export with --format=savedmodel or "
      "--format=model_garden."
    )
  config = _config(loaded)
  try:
    weights = huggingface_names.encoder_weights(
      loaded.network, config["num_hidden_layers"]
    )
  except ValueError as error:
    raise errors.UsageError(str(error)) from error
  with files.complete_or_absent(output_dir / "model.safetensors") as scratch:
    safetensors_numpy.save_file(
      {weight.name: weight.to_huggingface() for weight in weights},
      scratch,
      metadata={"format": "pt"},  # Which transformers looks for.
    )
  files.write_json(output_dir / "config.json", config)
  encoder_files.write_vocabulary(output_dir, loaded)


def _config(loaded: encoder_files.LoadedEncoder) -> dict[str, Any]:
  """Returns the content of `config.json`."""
  built = loaded.network.get_config()
  name = loaded.encoder.params.get("hidden_activation", _DEFAULT_ACTIVATION)
  # Where several of their names are one of ours, the first is taken.
  known = reversed(huggingface_config.ACTIVATIONS.items())
  activations = {ours: theirs for theirs, ours in known}
  if name not in activations:
    raise errors.UsageError(
      f"Hugging Face's BERT has no name for hidden_activation {name!r}."
    )
  return {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": built["vocab_size"],
    "hidden_size": built["hidden_size"],
    "num_hidden_layers": built["num_layers"],
    "num_attention_heads": built["num_attention_heads"],
    "intermediate_size": built["inner_dim"],
    "max_position_embeddings": built["max_sequence_length"],
    "type_vocab_size": built["type_vocab_size"],
    "hidden_act": activations[name],
    "hidden_dropout_prob": built["output_dropout"],
    "attention_probs_dropout_prob": built["attention_dropout"],
    "initializer_range": loaded.encoder.params.get("initializer_range", 0.02),
    "layer_norm_eps": huggingface_config.LAYER_NORM_EPSILON,
    "position_embedding_type": "absolute",
  }
