"""Finds the architecture and vocabulary of an encoder beside its checkpoint.

A pre-training run writes `params.yaml` there and `swe import` writes
`encoder.yaml`, so nobody has to retype an architecture, or fine-tunes on token
ids that mean other tokens.
"""

from typing import NamedTuple

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.data.prepare import prepared_data
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import encoder_files
from swe_tf.modeling import registry


class EncoderSource(NamedTuple):
  """An encoder that can be fine-tuned.

  Attributes:
    checkpoint: The prefix of the checkpoint.
    config_file: The file that describes its architecture.
    encoder: The architecture.
    vocab_file: The vocabulary that it was trained with, if it still exists.
  """

  checkpoint: str
  config_file: files.Path
  encoder: registry.Encoder
  vocab_file: files.Path | None


def find_encoder(checkpoint: files.PathLike) -> EncoderSource:
  """Finds the encoder of a checkpoint.

  Args:
    checkpoint: A checkpoint of a pre-training or fine-tuning run, or one that
      `swe import` wrote; or a directory, whose latest checkpoint is taken.

  Raises:
    UsageError: If there is no checkpoint, or no config beside it.
  """
  path, config_file = checkpoint_files.find_with_config(checkpoint)
  encoder = encoder_files.read_config(config_file)
  vocab_file = _find_vocabulary(config_file, encoder.task)
  return EncoderSource(path, config_file, encoder, vocab_file)


def check_vocabulary(
  source: EncoderSource, data: prepared_data.PreparedData
) -> None:
  """Raises `UsageError` unless data and encoder have the same vocabulary.

  Args:
    source: The encoder.
    data: The data to fine-tune on.
  """
  place = data.path
  if source.vocab_file:
    vocabulary = vocab_lib.Vocabulary.load(str(source.vocab_file))
    if vocabulary.sha256 != data.meta["vocab_sha256"]:
      raise errors.UsageError(
        f"{place}: the data has another vocabulary ("
        f"{data.meta['vocab_size']:,} tokens) than the encoder of "
        f"{source.checkpoint} ({len(vocabulary):,} tokens); prepare the data "
        f"with the vocabulary {source.vocab_file}."
      )
  check_fits_data(source.encoder, data, exact_vocab=not source.vocab_file)


def check_fits_data(
  encoder: registry.Encoder,
  data: prepared_data.PreparedData,
  exact_vocab: bool = False,
) -> None:
  """Raises `UsageError` unless the data's ids and positions fit an encoder.

  Args:
    encoder: The architecture.
    data: The data.
    exact_vocab: Whether the sizes of the vocabularies must be equal, which is
      all that can be compared if the encoder's vocabulary is not available.
  """
  place = data.path
  size, known = data.meta["vocab_size"], encoder.vocab_size
  if known and (size > known or exact_vocab and size != known):
    raise errors.UsageError(
      f"{place}: the data has a vocabulary of {size:,} tokens, the encoder "
      f"one of {known:,}; prepare the data with the vocabulary that the "
      "encoder was trained with."
    )
  length, positions = data.meta["max_seq_length"], encoder.positions
  if positions and length > positions:
    raise errors.UsageError(
      f"{place}: max_seq_length is {length}, but the encoder has only "
      f"{positions} positions; prepare the data with a max_seq_length of "
      f"{positions} or less."
    )


def _find_vocabulary(
  config_file: files.Path, task: registry.Params
) -> files.Path | None:
  """Returns the vocabulary beside an encoder, or that of its training data."""
  places = [config_file.parent / "vocab.txt"]
  train_data = task.get("train_data") or {}
  if train_data.get("vocab_file_path"):
    places.append(files.as_path(library.find(train_data["vocab_file_path"])))
  input_path = train_data.get("input_path")
  if isinstance(input_path, str) and input_path:
    # `swe prepare` writes the vocabulary beside the records.
    first = files.as_path(input_path.split(",")[0].strip())
    places.append(first.parent / "vocab.txt")
  return next((place for place in places if place.exists()), None)
