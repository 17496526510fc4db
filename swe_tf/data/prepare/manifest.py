"""The manifest of prepared data: what the records hold and what made them.

`swe prepare` writes `manifest.json` last, so records that have one are
complete. All kinds of data have in common:

    kind, format_version
    vocab_size, vocab_sha256, do_lower_case, max_seq_length
    splits: {name: {file, size, ...}}

The rest depends on the kind; `docs/scoring.md` lists the keys. Files of older
versions (a `meta.json` for GLUE and SQuAD, a `manifest.json` without a kind for
pre-training) are converted when they are read.
"""

import collections
from collections.abc import Mapping
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf import files

FILE_NAME = "manifest.json"
JOURNAL_NAME = "prepare.journal"
PRETRAINING, GLUE, SQUAD = "pretraining", "glue", "squad"
SQUAD_TASKS = {"squad_v1.1": "1.1", "squad_v2.0": "2.0"}

_OLD_FILE_NAME = "meta.json"
_FORMAT_VERSION = 2
# The only split of a corpus, which has all of its shards.
_CORPUS = "train"


@dataclasses.dataclass(frozen=True)
class Settings:
  """The settings that the shards of a corpus are made with.

  Attributes:
    masking: `random` or `whole_word`.
    masking_rate: The fraction of the tokens to predict.
    next_sentence: Whether the sequences are sentence pairs.
    dupe_factor: How often each sequence is written, with new masks.
    seed: The seed of the masks, the pairs and the order in a shard.
  """

  seq_length: int
  max_predictions_per_seq: int
  masking: str
  masking_rate: float
  lower_case: bool
  next_sentence: bool
  dupe_factor: int
  num_shards: int
  seed: int
  vocab_size: int
  vocab_sha256: str

  def shard_name(self, index: int) -> str:
    return f"pretrain-{index:05d}-of-{self.num_shards:05d}.tfrecord"


def make(kind: str, **content: Any) -> dict[str, Any]:
  """Returns the content of a manifest."""
  return {"kind": kind, "format_version": _FORMAT_VERSION, **content}


def of_corpus(
  job: Mapping[str, Any], shards: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
  """Returns the manifest of a corpus.

  Args:
    job: The `settings` and the `inputs` that the shards are made from.
    shards: The counts of every shard: `examples`, `tokens`, `predictions`.
  """
  totals: collections.Counter[str] = collections.Counter()
  for counts in shards.values():
    totals.update(counts)
  # Model Garden's names, as in the other kinds.
  names = {"seq_length": "max_seq_length", "lower_case": "do_lower_case"}
  settings = {names.get(k, k): value for k, value in job["settings"].items()}
  corpus = {
    "file": "pretrain-*.tfrecord",
    "size": totals.pop("examples", 0),
    **totals,
    "shards": dict(sorted(shards.items())),
  }
  return make(
    PRETRAINING, **settings, inputs=job["inputs"], splits={_CORPUS: corpus}
  )


def write(directory: files.PathLike, content: Mapping[str, Any]) -> None:
  files.write_json(files.as_path(directory) / FILE_NAME, content)


def find(directory: files.PathLike) -> files.Path | None:
  """Returns the path of the manifest in a directory, if there is one."""
  names = (FILE_NAME, _OLD_FILE_NAME)
  paths = [files.as_path(directory) / name for name in names]
  return next((path for path in paths if path.exists()), None)


def read(path: files.PathLike) -> dict[str, Any]:
  """Returns the content of a manifest, whatever version wrote it."""
  content = files.read_json(path)
  keys = {"kind", "task", "settings"}
  if not isinstance(content, dict) or keys.isdisjoint(content):
    raise errors.UsageError(f'{path}:1: no "kind"; is it from `swe prepare`?')
  version = content.get("format_version", 1)
  if isinstance(version, int) and version > _FORMAT_VERSION:
    raise errors.UsageError(
      f"{path}: format_version {version} is newer than this program, which "
      f"supports {_FORMAT_VERSION}; update it."
    )
  if "kind" in content and not _has_splits(content):
    raise errors.UsageError(
      f"{path}: its splits are not as `swe prepare` wrote them; prepare the "
      "data again."
    )
  if "kind" in content:
    return content
  if "settings" in content:
    return of_corpus(content, content["shards"])
  if content["task"] not in SQUAD_TASKS:
    return make(GLUE, **content)
  splits = {
    name: {
      "file": f"{name}.tf_record",
      "size": content[f"{name}_data_size"],
      "questions": content.pop(f"{name}_questions"),
      "dropped_questions": content.pop(f"{name}_dropped_questions"),
    }
    for name in ("train", "eval")
    if f"{name}_data_size" in content
  }
  return make(SQUAD, **content, splits=splits)


def _has_splits(content: Mapping[str, Any]) -> bool:
  splits = content.get("splits")
  return isinstance(splits, Mapping) and all(
    isinstance(split, Mapping) and {"file", "size"} <= split.keys()
    for split in splits.values()
  )


def load(directory: files.PathLike) -> dict[str, Any] | None:
  """Returns the content of the manifest in a directory, if there is one."""
  path = find(directory)
  return read(path) if path else None


def shards_of(content: Mapping[str, Any] | None) -> dict[str, dict[str, int]]:
  """Returns the counts of a corpus's shards by file name."""
  splits = content["splits"] if content else {}
  return splits.get(_CORPUS, {}).get("shards", {})
