"""Checkpoints on disk, and the encoders that they hold.

A checkpoint is a prefix, such as DIR/ckpt-1000, with an index and data files;
DIR/checkpoint names the latest one. An encoder is a checkpoint with the key
`encoder`, which Model Garden's tasks take as `init_checkpoint`, and the config
beside it: `encoder.yaml`, or the `params.yaml` of a run. TensorFlow is imported
only to read and write weights.
"""

import pathlib
import re
from typing import Any, NamedTuple

import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf import yaml_files
from swe_tf.modeling import registry

# The last bytes of every table file, and so of every index.
_MAGIC = bytes.fromhex("57fb808b247547db")
# The configs that Model Garden and `swe finetune` leave beside a checkpoint.
_CONFIG_NAMES = ("encoder.yaml", "params.yaml")
# How often a model grows, and where a checkpoint says how often it has.
_STAGES = {"net2net": 1, "stacking": 2}
_STAGE = "growth/stage/.ATTRIBUTES/VARIABLE_VALUE"
_LATEST = re.compile(r'^model_checkpoint_path: "(.*)"', re.MULTILINE)


class NoCheckpoint(errors.UsageError):
  """There is no checkpoint; a run may still write one."""


def find(checkpoint: files.PathLike, name: str = "") -> str:
  """Returns a prefix whose files exist, of a prefix or the latest in a folder.

  Errors quote the `name` of the parameter that gave it.
  """
  path = files.as_path(checkpoint)
  # Must come first: in ram:// TensorFlow takes a prefix for a directory.
  is_prefix = files.as_path(f"{checkpoint}.index").exists()
  is_directory = not is_prefix and path.is_dir()
  prefix = _latest(path) if is_directory else str(checkpoint)
  place = f"{name} ({checkpoint})" if name else str(checkpoint)
  if not prefix or not files.as_path(f"{prefix}.index").exists():
    raise NoCheckpoint(
      f"there is no checkpoint at {place}; name a directory with one, or a "
      "prefix such as DIR/ckpt-1000."
    )
  if not files.read_bytes(f"{prefix}.index").endswith(_MAGIC):
    raise errors.UsageError(
      f"{prefix}.index is not the index of a checkpoint, or it is truncated; "
      "name another checkpoint."
    )
  data = re.sub(r"([*?[])", r"[\1]", files.as_path(prefix).name) + ".data-*"
  if not list(files.as_path(prefix).parent.glob(data)):
    raise errors.UsageError(
      f"{prefix}.index is there, but no {prefix}.data-*; copy all files of the "
      "checkpoint."
    )
  return prefix


def _latest(directory: files.Path) -> str | None:
  state = directory / "checkpoint"
  if not state.is_file():
    return None
  found = _LATEST.search(files.read_text(state))
  return str(directory / found[1]) if found else None


def reader(prefix: str) -> Any:
  """Returns TensorFlow's reader of a checkpoint.

  `tf.train.load_checkpoint` would look for a directory first; see `find`.
  """
  import tensorflow as tf

  return tf.compat.v1.train.NewCheckpointReader(prefix)


def find_with_config(
  checkpoint: files.PathLike, config_file: files.PathLike | None = None
) -> tuple[str, files.Path]:
  """Returns the prefix of a checkpoint and the config file of its encoder.

  By default that is `encoder.yaml` or `params.yaml` beside the checkpoint.
  """
  path = find(checkpoint)
  places = [files.as_path(path).parent / name for name in _CONFIG_NAMES]
  if config_file:
    places = [files.as_path(config_file)]
  config_path = next((each for each in places if each.exists()), None)
  if config_path is None:
    raise errors.UsageError(
      f"there is no {' or '.join(map(str, places))}; put the params.yaml of "
      "the run that wrote the checkpoint beside it, or give a config_file."
    )
  return path, config_path


class EncoderSource(NamedTuple):
  """An encoder, and the vocabulary that it was trained with, if it exists."""

  checkpoint: str
  encoder: registry.Encoder
  vocab_file: files.PathLike | None


def find_encoder(
  checkpoint: files.PathLike, config_file: files.PathLike | None = None
) -> EncoderSource:
  """Finds the encoder of a checkpoint; see `find_with_config`.

  Its vocabulary lies beside the checkpoint or the config, or the config names
  it or the shards that it lies beside.
  """
  path, config_path = find_with_config(checkpoint, config_file)
  encoder = read_config(config_path)
  check_grown(path, encoder)
  places = [files.as_path(each).parent for each in (path, config_path)]
  data = encoder.task.get("train_data") or {}
  # `swe prepare` writes the vocabulary beside the records.
  paths = data.get("input_path")  # A mapping is a mixture.
  shards = files.split(paths) if isinstance(paths, (str, list)) else []
  places += [files.as_path(each).parent for each in shards[:1]]
  found = [place / "vocab.txt" for place in places]
  if data.get("vocab_file_path"):
    found.insert(2, files.as_path(library.find(data["vocab_file_path"])))
  vocab_file = next((each for each in found if each.exists()), None)
  return EncoderSource(path, encoder, vocab_file)


class LoadedEncoder(NamedTuple):
  """An encoder with its weights, and the vocabulary if there is one."""

  network: Any  # A `BertEncoderV2` or a subclass.
  encoder: registry.Encoder
  vocab_file: files.PathLike | None


def load_encoder(
  checkpoint: files.PathLike, config_file: files.PathLike | None = None
) -> LoadedEncoder:
  """Reads the encoder of a checkpoint; see `find_encoder`."""
  path, encoder, vocab_file = find_encoder(checkpoint, config_file)
  network = encoder.build()
  read_into(path, "the encoder of its config", encoder=network)
  return LoadedEncoder(network, encoder, vocab_file)


def check_grown(path: str, encoder: registry.Encoder) -> None:
  """Raises if the encoder is not trained yet: a smaller one still is.

  `swe_tf.methods.growth` trains it, and keeps its stage in the checkpoint.
  """
  method = str((encoder.task.get("growth") or {}).get("method"))
  if method not in _STAGES:
    return
  found = reader(path)
  if found.has_tensor(_STAGE) and found.get_tensor(_STAGE) < _STAGES[method]:
    raise errors.UsageError(
      f"{path} is from before the model has grown (task.growth.method is "
      f"{method!r}), so its full size is not trained; take a later checkpoint."
    )


def read_into(path: str, what: str, **items: Any) -> None:
  """Reads all variables of `items` from a checkpoint that may hold more."""
  import tensorflow as tf

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
  import tensorflow as tf

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
