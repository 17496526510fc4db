"""The directory of a run: its files, its lock, and whether it is the same run.

    params.yaml     the run's complete config
    run.json        its name, experiment and method, its value on each axis, and
                    the metrics to measure
    run.lock        held by the process that works on the run
    log.txt         all that this process printed
    progress.json   how far it is, and how long it has taken so far
    result.json     written last: a run that has it is finished

Beside them are Model Garden's files: checkpoints and event files.
"""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
from typing import Any

import filelock
import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf.configs import sameness

# A worker whose sweep was killed ends at once; a lock that is held longer
# belongs to somebody else.
LOCK_SECONDS = 15.0


@dataclasses.dataclass(frozen=True)
class RunDirectory:
  """The directory of a run.

  Attributes:
    path: Its path; may be a URL.
  """

  path: files.Path

  def __post_init__(self):
    object.__setattr__(self, "path", files.as_path(self.path))

  @property
  def config_file(self) -> files.Path:
    return self.path / "params.yaml"

  @property
  def log_file(self) -> files.Path:
    return self.path / "log.txt"

  def read_about(self) -> dict[str, Any]:
    """Returns the content of `run.json`."""
    return files.read_json(self.path / "run.json")

  def read_result(self) -> dict[str, Any] | None:
    """Returns the content of `result.json`; None if the run is unfinished."""
    path = self.path / "result.json"
    return files.read_json(path) if path.exists() else None

  def read_progress(self) -> dict[str, Any]:
    """Returns `progress.json`: at least step, steps and the time so far."""
    path = self.path / "progress.json"
    found = files.read_json(path) if path.exists() else {}
    empty = {"step": 0, "steps": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    return empty | found

  def begin(self, about: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Writes `params.yaml` and `run.json`, unless the run began before."""
    if (self.path / "run.json").exists():
      return
    text = yaml.safe_dump(dict(config), sort_keys=False)
    files.write_text(self.config_file, text)
    files.write_json(self.path / "run.json", about)

  @contextlib.contextmanager
  def lock(self) -> Iterator[None]:
    """Keeps other processes from working on the run until the block ends.

    A store (a URL) has no locks; there, only one sweep may run at a time.

    Raises:
      UsageError: If another process is working on it and does not end soon.
    """
    self.path.mkdir(parents=True, exist_ok=True)
    if files.is_url(self.path):
      yield
      return
    lock = filelock.FileLock(self.path / "run.lock")
    try:
      lock.acquire(timeout=LOCK_SECONDS)
    except filelock.Timeout as error:
      raise errors.UsageError(
        f"{self.path}: another process is working on this run (its id is "
        f"{self.read_progress().get('process', 'not known')}). Wait for it, "
        "or end it, and run the same command again."
      ) from error
    try:
      yield
    finally:
      lock.release()


def refuse_other(
  path: files.PathLike, earlier: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
  """Raises `UsageError` if what is at `path` comes from another config."""
  for field, then, value in sameness.difference(earlier, now):
    raise errors.UsageError(
      f"{path}: the run here has {field} {then!r}, but now it is {value!r}; "
      "choose another output_dir."
    )
