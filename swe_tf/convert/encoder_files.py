"""An encoder on disk: a checkpoint with the key `encoder`, and its config.

What Model Garden's tasks take as `init_checkpoint`, beside an `encoder.yaml`
that they take as a config file. Read and written here for all conversions.
"""

from collections.abc import Iterator
import contextlib
import pathlib
import shutil
import tempfile
from typing import Any
from typing import NamedTuple

import tensorflow as tf
import tf_keras
import yaml

from official.nlp.configs import encoders
from swe_tf import errors
from swe_tf import files
from swe_tf.modeling import activations  # noqa: F401  Makes its name known.
from swe_tf.modeling import encoder as encoder_lib

# The configs that Model Garden and `swe finetune` leave beside a checkpoint.
_CONFIG_NAMES = ("encoder.yaml", "params.yaml")


class Encoder(NamedTuple):
  """An encoder with its weights.

  Attributes:
    network: A `BertEncoderV2` or a subclass.
    type: The type in the config: `bert`, `bert_v2` or `any`.
    params: The parameters of the `BertEncoderConfig`.
    vocab_file: The vocabulary beside the checkpoint, if there is one.
  """

  network: tf_keras.layers.Layer
  type: str
  params: dict[str, Any]
  vocab_file: pathlib.Path | None


def build_network(
  encoder_type: str, params: dict[str, Any]
) -> tf_keras.layers.Layer:
  """Returns an encoder with its variables.

  Model Garden's types `bert` and `bert_v2` read each other's checkpoints, so
  both are built as the second.

  Args:
    encoder_type: `bert`, `bert_v2` or `any`, for those of `swe_tf`.
    params: The parameters of its config.
  """
  if encoder_type == "any":
    network = encoder_lib.build_encoder(encoder_lib.EncoderConfig(**params))
  else:
    network = encoders.build_encoder(
      encoders.EncoderConfig({"type": "bert_v2", "bert_v2": params})
    )
  network(network.inputs)
  return network


def load_encoder(
  checkpoint: files.PathLike, config_file: files.PathLike | None = None
) -> Encoder:
  """Reads the encoder of a checkpoint.

  Args:
    checkpoint: A checkpoint, or a directory, of which the latest one is taken:
      of a pre-training or fine-tuning run, or what `swe import` wrote.
    config_file: A YAML file with `task.model.encoder`. By default
      `encoder.yaml` or `params.yaml` beside the checkpoint.

  Raises:
    UsageError: If there is no checkpoint, no config, or they do not agree.
  """
  path, config_path = find_files(checkpoint, config_file)
  encoder_type, params = read_config(config_path)
  network = build_network(encoder_type, params)
  try:
    status = tf.train.Checkpoint(encoder=network).read(path)
    status.expect_partial().assert_existing_objects_matched()
  except (AssertionError, ValueError) as error:
    raise errors.UsageError(
      f"{path} does not hold the encoder of {config_path}: "
      f"{str(error).splitlines()[0]}"
    ) from error
  vocab_file = pathlib.Path(path).parent / "vocab.txt"
  return Encoder(
    network, encoder_type, params, vocab_file if vocab_file.exists() else None
  )


def find_files(
  checkpoint: files.PathLike,
  config_file: files.PathLike | None = None,
) -> tuple[str, pathlib.Path]:
  """Returns the prefix of a checkpoint, and the config of its encoder.

  Args:
    checkpoint: See `load_encoder`.
    config_file: See `load_encoder`.

  Raises:
    UsageError: If there is no checkpoint or no config.
  """
  path = str(checkpoint)
  if tf.io.gfile.isdir(path):
    path = tf.train.latest_checkpoint(path)
  if not path or not tf.io.gfile.exists(f"{path}.index"):
    raise errors.UsageError(
      f"there is no checkpoint at {checkpoint}; name a directory or a prefix "
      "such as DIR/ckpt-1000."
    )
  candidates = (
    [pathlib.Path(config_file)]
    if config_file
    else [pathlib.Path(path).parent / name for name in _CONFIG_NAMES]
  )
  config_path = next((each for each in candidates if each.exists()), None)
  if config_path is None:
    raise errors.UsageError(
      f"there is no {' or '.join(map(str, candidates))}; put the params.yaml "
      "of the run that wrote the checkpoint beside it (swe export can also "
      "be told with --config_file)."
    )
  return path, config_path


def read_config(path: pathlib.Path) -> tuple[str, dict[str, Any]]:
  """Returns the type and the parameters of the encoder in a config file."""
  content = yaml.safe_load(files.read_text(path))
  for key in ("task", "model", "encoder"):
    content = content.get(key) if isinstance(content, dict) else None
  if not isinstance(content, dict) or "type" not in content:
    raise errors.UsageError(f"{path} has no task.model.encoder.type.")
  encoder_type = content["type"]
  if encoder_type not in ("bert", "bert_v2", "any"):
    raise errors.UsageError(
      f"{path}: the encoder has type {encoder_type!r}, but only BERT (bert, "
      "bert_v2, any) can be converted."
    )
  return encoder_type, content[encoder_type]


def write_encoder(output_dir: pathlib.Path, encoder: Encoder) -> None:
  """Writes the checkpoint, `encoder.yaml` and `vocab.txt` into a directory."""
  checkpoint = tf.train.Checkpoint(encoder=encoder.network)
  checkpoint.save(str(output_dir / "ckpt"))
  config = {"type": encoder.type, encoder.type: encoder.params}
  (output_dir / "encoder.yaml").write_text(
    yaml.safe_dump({"task": {"model": {"encoder": config}}})
  )
  if encoder.vocab_file:
    shutil.copyfile(encoder.vocab_file, output_dir / "vocab.txt")


@contextlib.contextmanager
def new_directory(path: files.PathLike) -> Iterator[pathlib.Path]:
  """Yields a scratch directory that becomes `path` if the block succeeds."""
  path = pathlib.Path(path)
  files.refuse_existing([path])
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(
      tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.")
    )
  except OSError as error:
    raise errors.UsageError(
      f"cannot make {path}: {error.strerror}; choose another output."
    ) from error
  try:
    yield scratch
    scratch.chmod(0o755)  # mkdtemp makes it private.
    scratch.rename(path)
  except BaseException:
    shutil.rmtree(scratch)
    raise
