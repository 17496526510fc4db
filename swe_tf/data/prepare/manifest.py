"""The manifest of prepared data: what the records hold and what made them.

`swe prepare` writes `manifest.json` last, so records that have one are
complete. All kinds of data have `kind`, `format_version`, `vocab_size`,
`vocab_sha256`, `do_lower_case`, `max_seq_length`, and `splits: {name: {file,
size, ...}}`; `docs/scoring.md` lists the other keys. `read` gives what was
prepared for fine-tuning. Imports no TensorFlow.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import math
import os
import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import sameness
from swe_tf.data.text import vocab as vocab_lib

FILE_NAME = "manifest.json"
# The same content for the shards that are done, until all of them are.
JOURNAL_NAME = "prepare.journal"
PRETRAINING, GLUE, SQUAD = "pretraining", "glue", "squad"

_FORMAT_VERSION = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
  """The settings that the shards of a corpus are made with."""

  seq_length: int = 512
  max_predictions_per_seq: int | None = None  # seq_length * masking_rate.
  masking: str = "random"  # Or `whole_word`.
  masking_rate: float = 0.15
  lower_case: bool = True
  dupe_factor: int = 1  # How often each is written, with new masks.
  fresh_masks: bool = False  # Whether masks are drawn while training instead.
  num_shards: int | None = None  # One per 16 MB of text.
  seed: int = 0  # Of the masks and the order in a shard.
  learn_vocab: int | None = None  # Written to vocab.txt, and to `vocab`.

  def shard_name(self, index: int) -> str:
    return f"pretrain-{index:05d}-of-{self.num_shards:05d}.tfrecord"


def max_predictions(
  seq_length: int, rate: float, asked: int | None = None
) -> int:
  """Returns `asked`, or if unset `seq_length * rate`, rounded up."""
  # In floating point, 100 * 0.07 is 7.000000000000001, which is not 8.
  found = asked or math.ceil(round(seq_length * rate, 6))
  if found > seq_length:
    raise errors.UsageError(
      f"max_predictions_per_seq ({found}) must not be more than seq_length "
      f"({seq_length})."
    )
  return found


def make(kind: str, **content: Any) -> dict[str, Any]:
  return {"kind": kind, "format_version": _FORMAT_VERSION, **content}


def of_corpus(
  settings: Settings,
  vocabulary: vocab_lib.Vocabulary,
  inputs: list[dict[str, Any]],
  shards: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
  """Returns the manifest of a corpus; see `shards_of` for its `shards`."""
  totals: collections.Counter[str] = collections.Counter()
  for facts in shards.values():
    totals.update({k: v for k, v in facts.items() if k != "fingerprint"})
  # Model Garden's names, as in the other kinds.
  names = {"seq_length": "max_seq_length", "lower_case": "do_lower_case"}
  fields = dataclasses.fields(Settings)
  return make(
    PRETRAINING,
    **{names.get(f.name, f.name): getattr(settings, f.name) for f in fields},
    vocab_size=len(vocabulary),
    vocab_sha256=vocabulary.sha256,
    inputs=inputs,
    splits={
      "train": {
        "file": "pretrain-*.tfrecord",
        "size": totals.pop("examples", 0),
        **totals,
        "shards": dict(sorted(shards.items())),
      }
    },
  )


def load(
  directory: files.PathLike, name: str = FILE_NAME
) -> dict[str, Any] | None:
  """Returns the content of the manifest in a directory, if there is one."""
  path = os.path.join(directory, name)
  if not files.as_path(path).exists():
    return None
  content = files.read_json(path)
  if not isinstance(content, dict) or "kind" not in content:
    raise errors.UsageError(f'{path}:1: no "kind"; is it from `swe prepare`?')
  version, splits = content.get("format_version"), content.get("splits")
  parts = splits.values() if isinstance(splits, Mapping) else [None]
  if version != _FORMAT_VERSION or not all(
    isinstance(part, Mapping) and {"file", "size"} <= set(part)
    for part in parts
  ):
    raise errors.UsageError(
      f"{path}: its splits are not as `swe prepare` writes them, or its "
      f"format_version is not {_FORMAT_VERSION}; prepare the data again."
    )
  return content


def shards_of(content: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
  """Returns the counts and fingerprints of a corpus's shards by file name."""
  splits = content["splits"] if content else {}
  return splits.get("train", {}).get("shards", {})


def counter() -> Callable[[str], int | None]:
  """Returns how to look up how many examples a shard has, if it is known."""
  find = functools.cache(load)

  def count(shard: str) -> int | None:
    folder, name = os.path.split(shard)
    return shards_of(find(folder)).get(name, {}).get("examples")

  return count


def missing_shards(
  directory: files.PathLike, content: Mapping[str, Any] | None
) -> list[str]:
  """Returns the shards that the manifest lists and the directory lacks."""
  listed = shards_of(content)
  there = {path.name for path in files.as_path(directory).glob("*.tfrecord")}
  return [name for name in listed if name not in there]


def check_unchanged(facts: Mapping[str, Any], *paths: files.PathLike) -> None:
  """Raises unless files are as `swe prepare` wrote them, and `facts` say."""
  noted = facts.get("fingerprint")
  if noted and noted != sameness.fingerprint(paths):
    raise errors.UsageError(
      f"{' or '.join(map(str, paths))} is cut or has changed since it was "
      "prepared; remove it and prepare the data again."
    )


@dataclasses.dataclass(frozen=True)
class Split:
  """A file of records; for SQuAD, `size` counts windows, not questions."""

  name: str
  path: str
  size: int
  labelled: bool


@dataclasses.dataclass(frozen=True)
class PreparedData:
  """A directory of records; `meta` is the content of its manifest."""

  directory: files.Path
  meta: Mapping[str, Any]
  splits: Mapping[str, Split]

  @property
  def path(self) -> files.Path:
    return self.directory / FILE_NAME

  @property
  def task(self) -> str:
    """`squad_v1.1`, `squad_v2.0`, or the name of a GLUE task."""
    return str(self.meta.get("task"))

  @property
  def is_squad(self) -> bool:
    return self.meta["kind"] == SQUAD

  @property
  def train(self) -> Split | None:
    return self.splits.get("train")

  @property
  def fingerprint(self) -> str:
    """The identity of the data; see `sameness`."""
    names = [split.path for split in self.splits.values()]
    answers = self.directory / "eval.json"
    some = [answers] if answers.exists() else []
    return sameness.fingerprint([self.path, *names, *some])

  def splits_of(self, *roles: str) -> Sequence[Split]:
    """Returns the splits whose names start with one of `roles`, in order."""
    return [self.splits[key] for key in self.splits if key.startswith(roles)]


def read(data_dir: files.PathLike) -> PreparedData:
  """Reads a directory's manifest and checks that its files are as it says."""
  directory = files.as_path(data_dir)
  path = directory / FILE_NAME
  meta = load(directory) or {}
  if meta.get("kind") not in (GLUE, SQUAD):
    raise errors.UsageError(
      f"{data_dir or 'data_dir'} has no {FILE_NAME} of GLUE or SQuAD; "
      "name a directory that `swe prepare squad` or `swe prepare glue` wrote."
    )
  splits = {}
  for name, split in meta["splits"].items():
    # Neither may lead out of its directory: predictions are written to a file
    # with the name of the split.
    for given in (name, split["file"]):
      if not re.fullmatch(r"\w[\w.-]*", str(given)):
        raise errors.UsageError(
          f"{path}: {given!r} is not the name of a split or of a file beside "
          "it; prepare the data again."
        )
    file = directory / split["file"]
    if not file.exists():
      raise errors.UsageError(
        f"{file} is not there, but {path} lists it; prepare the data again."
      )
    files.check_regular(file)
    answers = [directory / "eval.json"] if name == "eval" else []
    check_unchanged(split, file, *answers)
    labelled = split.get("labelled", True)  # SQuAD's always are.
    splits[name] = Split(name, str(file), split["size"], labelled)
  return PreparedData(directory, meta, splits)
