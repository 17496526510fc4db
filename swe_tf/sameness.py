"""Whether two configs are the same run, or may be compared; whether files are.

The one flattener of configs, and the one list of fields that do not matter:

    difference(a, b)                      every field: what `swe diff` prints
    difference(a, b, defines_training)    may a run be resumed with this config?
    difference(a, b, defines_result)      may the results be compared?

`fingerprint` is stored with what was made from files, and compared before more
is made. Imports no TensorFlow, except for URLs.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
import hashlib
import os
from typing import Any

from swe_tf import files

# In the directory of a run: the changes with which it was continued.
ACCEPTED_NAME = "accepted_changes.json"
# Prefixes of the fields that change neither the updates nor the final scores:
# where and how fast a run computes, what it logs and keeps, when it gives up.
_HARMLESS = (
  "runtime.",
  "task.micro_batches",  # The same update, in less memory.
  "trainer.allow_tpu_summary",
  "trainer.best_checkpoint_",
  "trainer.checkpoint_interval",
  "trainer.continuous_eval_timeout",
  "trainer.eval_tf_",
  "trainer.loss_upper_bound",
  "trainer.max_to_keep",
  "trainer.preemption_",
  "trainer.recovery_",
  "trainer.steps_per_loop",
  "trainer.summary_interval",
  "trainer.train_tf_",
  "trainer.validation_interval",
  "trainer.validation_summary_subdir",
)
# Of `runtime`, only these reach the numbers.
_PRECISION = ("runtime.mixed_precision_dtype", "runtime.loss_scale")
# What a run is scored on does not touch its updates, and what it starts from is
# read only once.
SCORED = ("task.validation_data.", "trainer.validation_steps")
_START = "task.init_checkpoint"
# Enough to tell two files of the same size apart, whatever the file's size:
# the start and the end change if records are added, lost, cut or reordered.
_SAMPLE_BYTES = 1 << 16


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
  """Returns the values of nested tables by dotted field.

  A field that is None or empty counts as absent, and a tuple as a list, because
  files have no tuples.
  """
  if isinstance(config, Mapping):
    fields: dict[str, Any] = {}
    for key, value in config.items():
      fields |= flatten(value, f"{prefix}.{key}" if prefix else str(key))
    return fields
  value = list(config) if isinstance(config, tuple) else config
  return {} if value is None or value == [] else {prefix: value}


def defines_result(field: str) -> bool:
  """Whether runs that differ in this field may end with other scores."""
  return field in _PRECISION or not field.startswith(_HARMLESS)


def defines_training(field: str) -> bool:
  """Whether a run that goes on with another value would be another run."""
  return defines_result(field) and not field.startswith((*SCORED, _START))


def difference(
  then: Mapping[str, Any],
  now: Mapping[str, Any],
  matters: Callable[[str], bool] = lambda field: True,
) -> list[tuple[str, Any, Any]]:
  """Returns the fields that differ, with both values; None where absent.

  >>> difference({"trainer": {"max_to_keep": 1}}, {"trainer": {}})
  [('trainer.max_to_keep', 1, None)]
  """
  one, other = flatten(then), flatten(now)
  return [
    (field, one.get(field), other.get(field))
    for field in dict.fromkeys((*one, *other))
    if one.get(field) != other.get(field) and matters(field)
  ]


def accepted(model_dir: files.PathLike) -> list[dict[str, Any]]:
  """Returns the changes with which a run was continued, oldest first.

  Each has the `checkpoint`, and `changes` as `difference` returns them.
  """
  path = files.as_path(model_dir) / ACCEPTED_NAME
  return files.read_json(path) if path.exists() else []


def describe_accepted(model_dir: files.PathLike) -> str:
  """Returns the changes with which a run was continued in words, if any."""
  return "; ".join(
    f"{field} was {then!r} and became {now!r} at {entry['checkpoint']}"
    for entry in accepted(model_dir)
    for field, then, now in entry["changes"]
  )


def fingerprint(paths: Iterable[files.PathLike]) -> str:
  """Returns a digest of the names, sizes, starts and ends of files.

  The order does not matter, and names are relative to the directory that all
  files share: data that is moved or copied as a whole stays the same. Only the
  first and the last 64 kB of a file are read. A file that cannot be read is a
  `UsageError`.
  """
  names = sorted({os.fspath(path) for path in paths})
  shared = os.path.commonprefix(names).rfind("/") + 1
  digest = hashlib.sha256()
  # A store answers slowly, but many at a time.
  with futures.ThreadPoolExecutor(16) as pool:
    for name, content in zip(names, pool.map(_sample, names), strict=True):
      digest.update(f"{name[shared:]}\0".encode())
      digest.update(content)
  return digest.hexdigest()


def _sample(path: str) -> bytes:
  """Returns the digest of a file's size, its start and its end."""
  with files.open_binary(path) as file:
    size = file.seek(0, os.SEEK_END) or file.tell()  # GFile returns None.
    digest = hashlib.sha256(b"%d" % size)
    for start in sorted({0, max(0, size - _SAMPLE_BYTES)}):
      file.seek(start)
      digest.update(file.read(_SAMPLE_BYTES))
  return digest.digest()
