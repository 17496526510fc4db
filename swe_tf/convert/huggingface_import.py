"""A BERT encoder in Hugging Face's layout to a Model Garden checkpoint.

Reads `config.json`, `model.safetensors` and `vocab.txt`. Heads are not read.
Everything is checked before anything is written.
"""

from typing import Any

import numpy as np
import safetensors
import tf_keras

from swe_tf import errors
from swe_tf import files
from swe_tf.convert import huggingface_names
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import activations
from swe_tf.modeling import encoder_files
from swe_tf.modeling import registry

# Hugging Face's names of what Model Garden calls `gelu`, and of others.
ACTIVATIONS = {
  "gelu": activations.EXACT_GELU,
  "gelu_new": "gelu",
  "gelu_pytorch_tanh": "gelu",
  "relu": "relu",
}

# What both configs say; only the number of layers has two names.
_SIZES = (
  "vocab_size",
  "hidden_size",
  "num_hidden_layers",
  "num_attention_heads",
  "intermediate_size",
  "max_position_embeddings",
  "type_vocab_size",
)

# What Model Garden's encoder has and no config can change.
LAYER_NORM_EPSILON = 1e-12


def import_huggingface(
  input_dir: files.PathLike, output_dir: files.PathLike
) -> encoder_files.LoadedEncoder:
  """Writes an encoder checkpoint, its config and its vocabulary.

  `output_dir` gets a checkpoint with the key `encoder`, which Model Garden's
  tasks take as `init_checkpoint`; `encoder.yaml`, which they take as a config
  file; and `vocab.txt`.

  Args:
    input_dir: Has `config.json`, `model.safetensors` and `vocab.txt`.
    output_dir: A directory that is not there yet.

  Raises:
    UsageError: If the encoder is one that Model Garden's cannot be, a weight is
      missing or has another shape, or `output_dir` is there.
  """
  input_dir = files.as_path(input_dir)
  files.refuse_existing([output_dir])
  params = encoder_params(input_dir / "config.json")
  vocab_file = input_dir / "vocab.txt"
  tokens, size = (
    len(vocab_lib.Vocabulary.load(vocab_file)),
    params["vocab_size"],
  )
  if tokens > size:
    raise errors.UsageError(
      f"{vocab_file} has {tokens} tokens, but vocab_size is {size} in "
      "config.json; the files do not belong together."
    )
  encoder = registry.bert(params, "bert")
  network = encoder.build()
  load_weights(network, params["num_layers"], input_dir / "model.safetensors")
  loaded = encoder_files.LoadedEncoder(network, encoder, vocab_file)
  with files.new_directory(output_dir) as scratch:
    encoder_files.write_encoder(scratch, loaded)
  return loaded


def encoder_params(path: files.PathLike) -> dict[str, Any]:
  """Returns the `BertEncoderConfig` that a `config.json` stands for.

  Raises:
    UsageError: If it is not a BERT encoder that Model Garden's can be.
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

  insist("model_type", ("bert",))
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
  return {
    **params,
    "hidden_activation": ACTIVATIONS[activation],
    "dropout_rate": config.get("hidden_dropout_prob", 0.1),
    "attention_dropout_rate": config.get("attention_probs_dropout_prob", 0.1),
    "initializer_range": config.get("initializer_range", 0.02),
    "norm_first": False,
  }


def load_weights(
  encoder: tf_keras.layers.Layer, num_layers: int, path: files.PathLike
) -> None:
  """Fills a Model Garden encoder from a safetensors file.

  Names may start with `bert.`, and layer norms may have gamma and beta, as in
  the oldest files.

  Raises:
    UsageError: If a weight is missing or has another shape, or there are more
      layers than expected.
  """
  tensors = _read_tensors(path)
  weights = huggingface_names.encoder_weights(encoder, num_layers)
  missing = [weight.name for weight in weights if weight.name not in tensors]
  if missing:
    raise errors.UsageError(
      f"{path}: {len(missing)} of {len(weights)} weights are missing, such "
      f"as {missing[0]}; is this a BERT encoder of {num_layers} layers, "
      "with its pooler?"
    )
  beyond = f"encoder.layer.{num_layers}."
  if any(name.startswith(beyond) for name in tensors):
    raise errors.UsageError(
      f"{path}: there is a {beyond[:-1]}, but num_hidden_layers is "
      f"{num_layers} in config.json."
    )
  for weight in weights:
    value = tensors[weight.name]
    if value.shape != weight.shape:
      raise errors.UsageError(
        f"{path}: {weight.name} has shape {value.shape}, but config.json "
        f"makes it {weight.shape}."
      )
    weight.variable.assign(weight.from_huggingface(value))


def _read_tensors(path: files.PathLike) -> dict[str, np.ndarray]:
  """Returns the tensors of a file by the names that BERT has today."""
  tensors = {}
  try:
    with safetensors.safe_open(str(path), framework="numpy") as archive:
      for name in archive.keys():  # noqa: SIM118 (no dict)
        short = name.removeprefix("bert.")
        short = short.replace("LayerNorm.gamma", "LayerNorm.weight")
        short = short.replace("LayerNorm.beta", "LayerNorm.bias")
        if short.startswith(("embeddings.", "encoder.", "pooler.")):
          tensors[short] = archive.get_tensor(name).astype(np.float32)
  except (OSError, TypeError, safetensors.SafetensorError) as error:
    raise errors.UsageError(
      f"cannot read {path}: {str(error).splitlines()[0]}."
    ) from error
  return tensors
