"""An encoder on disk: a checkpoint with the key `encoder`, and its config.

Model Garden's tasks take the checkpoint as `init_checkpoint`, and the
`encoder.yaml` beside it as a config file. Both are read and written here, for
fine-tuning and for all conversions.
"""

import pathlib
from typing import NamedTuple

import tensorflow as tf
import tf_keras
import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry


class LoadedEncoder(NamedTuple):
  """An encoder with its weights.

  Attributes:
    network: A `BertEncoderV2` or a subclass.
    encoder: Its family and parameters, from the config.
    vocab_file: The vocabulary beside the checkpoint, if there is one.
  """

  network: tf_keras.layers.Layer
  encoder: registry.Encoder
  vocab_file: files.PathLike | None


def load_encoder(
  checkpoint: files.PathLike, config_file: files.PathLike | None = None
) -> LoadedEncoder:
  """Reads the encoder of a checkpoint.

  Args:
    checkpoint: A checkpoint, or a directory, whose latest checkpoint is taken.
      It comes from pre-training, fine-tuning or `swe import`.
    config_file: A YAML file with `task.model.encoder`. By default
      `encoder.yaml` or `params.yaml` beside the checkpoint.

  Raises:
    UsageError: If there is no checkpoint or no config, or they do not agree.
  """
  path, config_path = checkpoint_files.find_with_config(checkpoint, config_file)
  encoder = read_config(config_path)
  network = encoder.build()
  read_into(path, f"the encoder of {config_path}", encoder=network)
  vocab_file = files.as_path(path).parent / "vocab.txt"
  found = vocab_file if vocab_file.exists() else None
  return LoadedEncoder(network, encoder, found)


def read_into(path: str, what: str, **items: tf.Module) -> None:
  """Reads all variables of `items` from a checkpoint that may hold more.

  Args:
    path: The checkpoint.
    what: What the items are, for the error.
    **items: The items, by their names in a `tf.train.Checkpoint`.
  """
  try:
    status = tf.train.Checkpoint(**items).read(path)
    # The checkpoint of a run has slots and heads too; ours must be in it.
    status.expect_partial().assert_existing_objects_matched()
  except (AssertionError, ValueError) as error:
    raise errors.UsageError(
      f"{path} does not hold {what}: {errors.first_line(error)}"
    ) from error


def read_config(path: files.PathLike) -> registry.Encoder:
  """Returns the encoder in a config file, or raises `UsageError`."""
  content = yaml_files.read(path)
  task = content.get("task") if isinstance(content, dict) else None
  encoder = registry.encoder_of(task) if isinstance(task, dict) else None
  if encoder is None:
    raise errors.UsageError(f"{path} has no task.model.encoder with its type.")
  try:
    encoder.config  # noqa: B018 (raises if it cannot be built)
  except errors.UsageError as error:
    raise errors.UsageError(f"{path}: {error}") from error
  return encoder


def write_encoder(output_dir: pathlib.Path, loaded: LoadedEncoder) -> None:
  """Writes the checkpoint, `encoder.yaml` and `vocab.txt` into a directory."""
  checkpoint = tf.train.Checkpoint(encoder=loaded.network)
  checkpoint.save(str(output_dir / "ckpt"))
  config = loaded.encoder.overrides(**loaded.encoder.params)
  (output_dir / "encoder.yaml").write_text(yaml.safe_dump({"task": config}))
  write_vocabulary(output_dir, loaded)


def write_vocabulary(output_dir: pathlib.Path, loaded: LoadedEncoder) -> None:
  """Copies the vocabulary, if there is one, into a directory."""
  if loaded.vocab_file:
    content = files.read_bytes(loaded.vocab_file)
    (output_dir / "vocab.txt").write_bytes(content)
