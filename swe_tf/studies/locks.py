"""Locks on a run: those of the file system, and leases on a store without any.

Both have `try_to_take`, `holder` and `release`. While another process holds the
lock, try for `patience` seconds, every `interval` seconds.
"""

import fcntl
import json
import os
import socket
import threading
import time
from typing import Any
import uuid

from swe_tf import errors
from swe_tf import files


class FileLock:
  """A lock that ends with the process that holds it."""

  # A worker whose sweep was killed ends at once; a lock that is held longer
  # belongs to somebody else.
  patience, interval = 15.0, 0.1

  def __init__(self, path: files.PathLike):
    self._file = open(path, "a+", encoding="utf-8")

  def try_to_take(self) -> bool:
    """Takes the lock if nobody holds it."""
    try:
      fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      return False
    self._file.truncate(0)
    self._file.write(str(os.getpid()))
    self._file.flush()
    return True

  def holder(self) -> str:
    """Returns the id of the process that holds it; '' if it is not known."""
    self._file.seek(0)
    return self._file.read()

  def release(self) -> None:
    self._file.close()


class Lease:
  """A file on a store, which its holder rewrites every few seconds.

  A lease that does not change for a while is free: its holder was killed, or
  its machine is gone. Those who want it watch the file, so no clocks are
  compared. If two find it free at the same moment, the one whose text stays in
  the file holds it.
  """

  _BEAT, _DEAD_AFTER = 5.0, 20.0
  patience, interval = 30.0, 0.5
  # The tokens of this process. A lease with its id but another token is from a
  # dead process that had the same id.
  _held: set[str] = set()

  def __init__(self, path: files.PathLike):
    self._path = files.as_path(path)
    self._token = uuid.uuid4().hex
    self._seen, self._since = "", 0.0
    self._ended = threading.Event()
    self._thread = threading.Thread(target=self._keep, daemon=True)

  def try_to_take(self) -> bool:
    """Takes the lease if nobody holds it, or its holder is gone."""
    found = self._read()
    if found != self._seen:
      self._seen, self._since = found, time.monotonic()
    is_old = time.monotonic() - self._since > self._DEAD_AFTER
    if found and not is_old and not _is_dead(found, self._held):
      return False
    self._write(0)
    time.sleep(self.interval)
    if not self._is_mine():
      return False
    self._held.add(self._token)
    self._thread.start()
    return True

  def holder(self) -> str:
    """Returns the process that holds it, and its machine."""
    content = _parse(self._seen)
    return f"{content.get('process', '')} on {content.get('host', '')}"

  def release(self) -> None:
    """Removes the file, unless the lease was lost to another."""
    self._ended.set()
    if self._thread.is_alive():
      self._thread.join()
    if self._token in self._held:
      self._held.remove(self._token)
      if self._is_mine():
        self._path.unlink()

  def _keep(self) -> None:
    beat = 0
    while not self._ended.wait(self._BEAT) and self._is_mine():
      beat += 1
      self._write(beat)

  def _is_mine(self) -> bool:
    return _parse(self._read()).get("token") == self._token

  def _read(self) -> str:
    try:
      return files.read_text(self._path) if self._path.exists() else ""
    except errors.UsageError:  # It was removed in between.
      return ""

  def _write(self, beat: int) -> None:
    content = {
      "host": socket.gethostname(),
      "process": os.getpid(),
      "token": self._token,
      "beat": beat,
    }
    files.write_text(self._path, json.dumps(content))


def _parse(text: str) -> dict[str, Any]:
  try:
    return json.loads(text)
  except ValueError:
    return {}


def _is_dead(text: str, held: set[str]) -> bool:
  """Whether a lease belongs to a process on this machine that has ended."""
  content = _parse(text)
  if content.get("host") != socket.gethostname():
    return False
  process = int(content["process"])
  if process == os.getpid():
    return content["token"] not in held
  try:
    os.kill(process, 0)
  except ProcessLookupError:
    return True
  except PermissionError:
    pass  # It is alive, and another user's.
  return False
