"""Finds a checkpoint and checks that its files are whole, without TensorFlow.

A checkpoint is a prefix, such as DIR/ckpt-1000, with an index and data files;
DIR/checkpoint names the latest one. TensorFlow reads what they hold.
"""

import re
from typing import Any

from swe_tf import errors
from swe_tf import files

# The last bytes of every table file, and so of every index.
_MAGIC = bytes.fromhex("57fb808b247547db")
# The configs that Model Garden and `swe finetune` leave beside a checkpoint.
_CONFIG_NAMES = ("encoder.yaml", "params.yaml")
_LATEST = re.compile(r'^model_checkpoint_path: "(.*)"', re.MULTILINE)


def find(checkpoint: files.PathLike, name: str = "") -> str:
  """Returns the prefix of a checkpoint whose files exist.

  Args:
    checkpoint: A prefix, or a directory, whose latest checkpoint is taken.
    name: The flag or the parameter that names it, for errors.

  Raises:
    UsageError: If there is none, its index is broken, or its data is missing.
  """
  path = files.as_path(checkpoint)
  # Must come first: in ram:// TensorFlow takes a prefix for a directory.
  is_prefix = files.as_path(f"{checkpoint}.index").exists()
  is_directory = not is_prefix and path.is_dir()
  prefix = _latest(path) if is_directory else str(checkpoint)
  place = f"{name} ({checkpoint})" if name else str(checkpoint)
  if not prefix or not files.as_path(f"{prefix}.index").exists():
    raise errors.UsageError(
      f"there is no checkpoint at {place}; name a directory with one, or a "
      "prefix such as DIR/ckpt-1000."
    )
  if not files.read_bytes(f"{prefix}.index").endswith(_MAGIC):
    raise errors.UsageError(
      f"{prefix}.index is not the index of a checkpoint, or it is truncated; "
      "name another checkpoint."
    )
  if not list(files.as_path(prefix).parent.glob(f"{_name(prefix)}.data-*")):
    raise errors.UsageError(
      f"{prefix}.index is there, but no {prefix}.data-*; copy all files of the "
      "checkpoint."
    )
  return prefix


def reader(prefix: str) -> Any:
  """Returns TensorFlow's reader of a checkpoint.

  `tf.train.load_checkpoint` would look for a directory first; see `find`.
  """
  import tensorflow as tf

  return tf.compat.v1.train.NewCheckpointReader(prefix)


def for_model_garden(prefix: str) -> str:
  """Returns the value of Model Garden's `init_checkpoint` for a checkpoint.

  Model Garden looks for a directory first; see `find`.

  Raises:
    UsageError: If the checkpoint is in ram:// and not the latest one there.
  """
  if "ram://" not in prefix:
    return prefix
  directory = files.as_path(prefix).parent
  if _latest(directory) != prefix:
    raise errors.UsageError(
      f"{prefix}: in ram://, only the latest checkpoint of a directory can be "
      "loaded; copy it to its own directory."
    )
  return str(directory)


def find_with_config(
  checkpoint: files.PathLike, config_file: files.PathLike | None = None
) -> tuple[str, files.Path]:
  """Returns the prefix of a checkpoint and the config file of its encoder.

  Args:
    checkpoint: See `find`.
    config_file: A YAML file with `task.model.encoder`. By default
      `encoder.yaml` or `params.yaml` beside the checkpoint.

  Raises:
    UsageError: If there is no checkpoint or no config.
  """
  path = find(checkpoint)
  candidates = (
    [files.as_path(config_file)]
    if config_file
    else [files.as_path(path).parent / name for name in _CONFIG_NAMES]
  )
  config_path = next((each for each in candidates if each.exists()), None)
  if config_path is None:
    raise errors.UsageError(
      f"there is no {' or '.join(map(str, candidates))}; put the params.yaml "
      "of the run that wrote the checkpoint beside it, or give a config_file."
    )
  return path, config_path


def _name(prefix: str) -> str:
  return re.sub(r"([*?[])", r"[\1]", files.as_path(prefix).name)


def _latest(directory: files.Path) -> str | None:
  state = directory / "checkpoint"
  if not state.is_file():
    return None
  found = _LATEST.search(files.read_text(state))
  return str(directory / found[1]) if found else None
