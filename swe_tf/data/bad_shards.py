"""Finds which files vanished or broke while a run was reading them, and why.

After an error of the input pipeline, which does not name the file, all files
are read one by one. As long as there is no error, nothing is checked.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import os

import tensorflow as tf

from official.common import dataset_fn
from official.core import config_definitions as cfg
from official.core import input_reader
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import files
from swe_tf.data import checks
from swe_tf.data import loaders
from swe_tf.data.text import text_files

# What a missing or broken file raises, but not what running out of memory does.
_KINDS = (
  tf.errors.DataLossError,
  tf.errors.InvalidArgumentError,
  tf.errors.NotFoundError,
  tf.errors.OutOfRangeError,
  tf.errors.PermissionDeniedError,
  tf.errors.UnavailableError,
  tf.errors.UnknownError,
)


class BadShards(errors.Failed):
  """Some files of a data set cannot be read."""


@dataclasses.dataclass(frozen=True)
class Shards:
  """The files of a data config, listed while all of them existed."""

  name: str  # The field of the task, for the error.
  params: cfg.DataConfig
  paths: Sequence[str]

  @classmethod
  def of(cls, name: str, params: cfg.DataConfig) -> "Shards":
    """Lists the files; none if the config does not name any."""
    paths: list[str] = []
    # TensorFlow Datasets manages its own files, and a mapping is a mixture.
    source = getattr(params, "input_path", None)
    if isinstance(source, (str, list, tuple)) and source != "dummy":
      with contextlib.suppress(ValueError):  # No match: reported elsewhere.
        paths = input_reader.match_files(source)
    prepared = getattr(params, "input_preprocessed_data_path", "")
    if prepared and not params.is_training:  # SQuAD, beside its questions.
      paths = [*paths, os.path.join(prepared, "eval.tf_record")]
    return cls(name, params, paths)

  @contextlib.contextmanager
  def named(self) -> Iterator[None]:
    """Raises `BadShards` if the block fails and files are to blame for it."""
    try:
      yield
    except _KINDS as error:
      # TensorFlow's message may name a file, or not: each one is read.
      reasons = {path: self.why_bad(path) for path in self.paths}
      found = {path: why for path, why in reasons.items() if why}
      if not found:
        raise
      raise self._bad(found) from error

  def require_all(self) -> None:
    """Raises `BadShards` if a file has vanished since they were listed.

    An input that is built then does not match it any more, and would read the
    others without a word.
    """
    now = Shards.of(self.name, self.params).paths
    gone = [path for path in self.paths if path not in now]
    if gone:
      raise self._bad(dict.fromkeys(gone, "it no longer exists"))

  def _bad(self, reasons: Mapping[str, str]) -> BadShards:
    found = "; ".join(f"{path} ({why})" for path, why in reasons.items())
    return BadShards(
      f"task.{self.name} cannot be read: {found}. Restore the file and run the "
      "same command again to resume; to go on without it, leave it out of the "
      "data and set accept_changes."
    )

  def why_bad(self, path: str) -> str | None:
    """Returns why a file cannot be read to its end, or None if it can."""
    if not tf.io.gfile.exists(path):
      return "it no longer exists"
    params = self.params
    is_text = isinstance(params, loaders.PretrainTextDataConfig)
    try:
      if path.endswith(".json"):
        files.read_json(path)
        return None
      if is_text and not text_files.are_records([path]):
        text_files.check(path)
        return None
      kind = getattr(params, "file_type", "tfrecord")
      records = dataset_fn.pick_dataset_fn(kind)(path)
      count = 0
      try:
        for _ in records:
          count += 1
      except tf.errors.OpError as error:
        return f"{errors.first_line(error)}, after {count} good records"
      if isinstance(params, pretrain_dataloader.BertPretrainDataConfig):
        checks.check_record(params, path, None)
    except errors.UsageError as error:
      return str(error).rstrip(".")
    return None
