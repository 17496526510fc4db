"""Converts a BERT in Hugging Face's layout to a Model Garden checkpoint.

Reads `config.json`, `model.safetensors` and `vocab.txt`. Heads are not read.
Everything is checked before anything is written.
"""

import numpy as np
import safetensors
import tf_keras

from swe_tf import errors
from swe_tf import files
from swe_tf.convert import huggingface_config
from swe_tf.convert import huggingface_names
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry

_ENCODER = ("embeddings.", "encoder.", "pooler.", "LayerNorm.")


def import_huggingface(
  input_dir: files.PathLike, output_dir: files.PathLike
) -> checkpoint_files.LoadedEncoder:
  """Writes an encoder checkpoint, its config and its vocabulary.

  `output_dir` gets a checkpoint with the key `encoder`, which Model Garden's
  tasks take as `init_checkpoint`; `encoder.yaml`, which they take as a config
  file; and `vocab.txt`.

  Args:
    input_dir: Has `config.json`, `model.safetensors` and `vocab.txt`.
    output_dir: A directory that does not exist yet.

  Raises:
    UsageError: If Model Garden has no such encoder, a weight is missing or has
      the wrong shape, or `output_dir` exists.
  """
  input_dir = files.as_path(input_dir)
  files.refuse_existing([output_dir])
  params = huggingface_config.read(input_dir)
  vocab_file = input_dir / huggingface_config.VOCABULARY
  # Only ours has a final layer norm.
  kind = "any" if params["norm_first"] else "bert"
  encoder = registry.bert(params, kind)
  network = encoder.build()
  weights_file = input_dir / huggingface_config.WEIGHTS
  load_weights(network, params["num_layers"], weights_file)
  loaded = checkpoint_files.LoadedEncoder(network, encoder, vocab_file)
  with files.new_directory(output_dir) as scratch:
    checkpoint_files.write_encoder(scratch, loaded)
  return loaded


def load_weights(
  encoder: tf_keras.layers.Layer, num_layers: int, path: files.PathLike
) -> None:
  """Fills a Model Garden encoder from a safetensors file.

  Names may start with that of the architecture (`bert.`), and layer norms may
  have gamma and beta, as in the oldest files.

  Raises:
    UsageError: If a weight is missing or has the wrong shape, or there are more
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
  # All shapes are compared before anything is written to disk.
  for weight in weights:
    value = tensors[weight.name]
    if value.shape != weight.shape:
      raise errors.UsageError(
        f"{path}: {weight.name} has shape {value.shape}, but by config.json it "
        f"should be {weight.shape}."
      )
    weight.variable.assign(weight.from_huggingface(value))


def _read_tensors(path: files.PathLike) -> dict[str, np.ndarray]:
  """Returns the encoder's tensors by their current names, without prefix."""
  tensors = {}
  try:
    with (
      files.local_copy(path) as local,
      safetensors.safe_open(local, framework="numpy") as archive,
    ):
      for name in archive.keys():  # noqa: SIM118 (no dict)
        short = name
        for layout in huggingface_names.LAYOUTS.values():
          short = short.removeprefix(layout.prefix)
        short = short.replace("LayerNorm.gamma", "LayerNorm.weight")
        short = short.replace("LayerNorm.beta", "LayerNorm.bias")
        if short.startswith(_ENCODER):
          # Weights may be float16; heads and position ids are left out.
          tensors[short] = archive.get_tensor(name).astype(np.float32)
  except (OSError, TypeError, safetensors.SafetensorError) as error:
    raise errors.UsageError(
      f"cannot read {path}: {str(error).splitlines()[0]}."
    ) from error
  return tensors
