"""The directory of a run: its files, its lock, and whether it is the same run.

    overrides.yaml   the run's own configuration
    run.json         its name, and what else people and reports need to know
    run.lock         held by the working process, whose id it contains
    log.txt          all that the process printed; for a run in the process of
                     its sweep, only the error that ended it
    progress.json    how far it is, and how long it has taken so far
    result.json      written last: a run that has it is finished

Beside them are Model Garden's files: params.yaml, checkpoints, event files.
"""

from collections.abc import Iterator, Mapping
import contextlib
import time
from typing import Any

import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf.studies import locks


class RunDirectory:
  """The directory of a run.

  Attributes:
    path: Its path; may be a URL.
    config_file: `overrides.yaml`.
    log_file: `log.txt`.
  """

  def __init__(self, path: files.PathLike):
    self.path = files.as_path(path)
    self.config_file = self.path / "overrides.yaml"
    self.log_file = self.path / "log.txt"

  def read_result(self) -> dict[str, Any] | None:
    """Returns the content of `result.json`; None if the run is unfinished."""
    return self._read("result.json")

  def write_result(self, content: Mapping[str, Any]) -> None:
    files.write_json(self.path / "result.json", content)

  def read_progress(self) -> dict[str, Any]:
    """Returns step, steps, seconds and cpu_seconds of all attempts so far."""
    # Runs from before progress.json existed have the time in run.json.
    found = self._read("progress.json") or self._read("run.json") or {}
    empty = {"step": 0, "steps": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    return {key: found.get(key, value) for key, value in empty.items()}

  def write_progress(self, content: Mapping[str, Any]) -> None:
    files.write_json(self.path / "progress.json", content)

  def begin(
    self, about: Mapping[str, Any], config: Mapping[str, Any] | None
  ) -> None:
    """Records what the run is, unless it began before.

    Args:
      about: The content of `run.json`.
      config: The content of `overrides.yaml`; None for a run without.
    """
    if (self.path / "run.json").exists():
      return
    if config is not None:
      text = yaml.safe_dump(dict(config), sort_keys=False)
      files.write_text(self.config_file, text)
    files.write_json(self.path / "run.json", about)

  @contextlib.contextmanager
  def lock(self) -> Iterator[None]:
    """Keeps others from working on the run until the block ends.

    Raises:
      UsageError: If another process is working on it and does not end soon.
    """
    self.path.mkdir(parents=True, exist_ok=True)
    kind = locks.Lease if files.is_url(self.path) else locks.FileLock
    lock = kind(self.path / "run.lock")
    deadline = time.monotonic() + lock.patience
    try:
      while not lock.try_to_take():
        if time.monotonic() > deadline:
          raise errors.UsageError(
            f"{self.path}: another process is working on this run (its id is "
            f"{lock.holder() or 'not known'}). Wait for it, or end it, and run "
            "the same command again."
          )
        time.sleep(lock.interval)
      yield
    finally:
      lock.release()

  def _read(self, name: str) -> dict[str, Any] | None:
    path = self.path / name
    return files.read_json(path) if path.exists() else None


def refuse_other(path: files.PathLike, earlier: Any, now: Any) -> None:
  """Raises `UsageError` if what is at `path` comes from another config."""
  difference = first_difference(earlier, now)
  if difference:
    raise errors.UsageError(
      f"{path}: the run here has {difference}; choose another --output_dir."
    )


def first_difference(earlier: Any, now: Any, path: str = "") -> str:
  """Describes the first difference of two nested tables; '' if none."""
  if isinstance(earlier, Mapping) and isinstance(now, Mapping):
    for key in dict.fromkeys((*earlier, *now)):
      found = first_difference(
        earlier.get(key), now.get(key), f"{path}.{key}".lstrip(".")
      )
      if found:
        return found
    return ""
  if isinstance(earlier, (list, tuple)) and isinstance(now, (list, tuple)):
    earlier, now = list(earlier), list(now)  # Files have no tuples.
  return "" if earlier == now else f"{path} {earlier!r}, but now it is {now!r}"
