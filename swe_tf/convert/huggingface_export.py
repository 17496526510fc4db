"""A Post-LN BERT encoder to Hugging Face's layout: the inverse of the import.

Writes `config.json`, `model.safetensors` and `vocab.txt`. Pre-LN encoders, and
those with another embedding width, have no place in Hugging Face's BERT.
"""

import pathlib
import shutil
from typing import Any

from safetensors import numpy as safetensors_numpy

from swe_tf import errors
from swe_tf import files
from swe_tf.convert import encoder_files
from swe_tf.convert import huggingface_import
from swe_tf.convert import huggingface_names

# What Model Garden takes if a config does not say.
_DEFAULT_ACTIVATION = "gelu"


def write_huggingface(
  output_dir: pathlib.Path, encoder: encoder_files.Encoder
) -> None:
  """Writes an encoder into a directory.

  Args:
    output_dir: The directory.
    encoder: The encoder.

  Raises:
    UsageError: If it is not what Hugging Face's BERT is.
  """
  if encoder.network.get_config()["norm_first"]:
    raise errors.UsageError(
      "the encoder is Pre-LN, but Hugging Face's BERT is Post-LN and has no "
      "final layer norm; export with --format=savedmodel or "
      "--format=model_garden."
    )
  config = _config(encoder)
  try:
    weights = huggingface_names.encoder_weights(
      encoder.network, config["num_hidden_layers"]
    )
  except ValueError as error:
    raise errors.UsageError(str(error)) from error
  tensors = output_dir / "model.safetensors"
  safetensors_numpy.save_file(
    {weight.name: weight.to_huggingface() for weight in weights},
    tensors,
    metadata={"format": "pt"},
  )  # Which transformers looks for.
  tensors.chmod(0o644)  # The library makes it private.
  files.write_json(output_dir / "config.json", config)
  if encoder.vocab_file:
    shutil.copyfile(encoder.vocab_file, output_dir / "vocab.txt")


def _config(encoder: encoder_files.Encoder) -> dict[str, Any]:
  """Returns the content of `config.json`."""
  built = encoder.network.get_config()
  name = encoder.params.get("hidden_activation", _DEFAULT_ACTIVATION)
  # Several of their names are one of ours; the first is as good as any.
  activation = next(
    (
      theirs
      for theirs, ours in huggingface_import.ACTIVATIONS.items()
      if ours == name
    ),
    None,
  )
  if activation is None:
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
    "hidden_act": activation,
    "hidden_dropout_prob": built["output_dropout"],
    "attention_probs_dropout_prob": built["attention_dropout"],
    "initializer_range": encoder.params.get("initializer_range", 0.02),
    "layer_norm_eps": huggingface_import.LAYER_NORM_EPSILON,
    "position_embedding_type": "absolute",
  }
