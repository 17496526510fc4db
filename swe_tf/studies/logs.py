"""The log of a run: all that its process prints, to a file or a URL."""

from collections.abc import Callable, Iterator
import contextlib
import os
import tempfile

from swe_tf import files


@contextlib.contextmanager
def capture(path: files.PathLike) -> Iterator[Callable[[], None]]:
  """Appends everything that the process prints from now on to a file.

  Args:
    path: The file. At a URL it is written as a whole, from a local copy.

  Yields:
    A function that brings the file up to date; it is also called at the end.
  """
  if not files.is_url(path):
    with open(path, "ab") as log:
      _redirect(log.fileno())
      yield lambda: None
    return
  earlier = _read(path)
  with tempfile.TemporaryFile() as scratch:
    descriptor = scratch.fileno()
    _redirect(descriptor)
    written = -1

    def save() -> None:
      nonlocal written
      size = os.fstat(descriptor).st_size
      if size != written:
        # Without seeking, which would move the position of the output.
        content = os.pread(descriptor, size, 0)
        files.write_bytes(path, earlier + content)
        written = size

    try:
      yield save
    finally:
      save()


def append(path: files.PathLike, text: str) -> None:
  """Appends text to the log of a run that shares its process's output."""
  files.write_bytes(path, _read(path) + text.encode())


def _read(path: files.PathLike) -> bytes:
  return files.read_bytes(path) if files.as_path(path).exists() else b""


def _redirect(descriptor: int) -> None:
  for stream in (1, 2):
    os.dup2(descriptor, stream)
