"""File helpers for paths and URLs: one-line errors, all-or-nothing writes.

A path is local, or a URL of any scheme that `tf.io.gfile` knows, such as
`gs://` or `ram://`. TensorFlow is imported only for a URL, so that an error in
a local file is reported at once.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import json
import os
import pathlib
import socket
import tempfile
from typing import Any, BinaryIO, TypeAlias, cast
import uuid

from etils import epath
from etils.epath import backend
from etils.epath import gpath
import filelock

from swe_tf import errors

PathLike = str | os.PathLike[str]
Path: TypeAlias = epath.Path

_JSON_NAMES: dict[type, str] = {str: "text", dict: "an object"}
# Written last: they mark the files beside them as complete.
_LAST = ("manifest.json", "checkpoint", "saved_model.pb", "config.json")


class _UrlPath(gpath.PosixGPath):
  """A path on any file system of `tf.io.gfile`; epath supports only some."""

  @property
  def _backend(self) -> backend.Backend:
    return backend.tf_backend

  @property
  def _path_str(self) -> str:
    scheme, *rest = self.parts
    if scheme == "/":  # epath keeps gs://a as /gs/a.
      scheme, *rest = f"{rest[0]}:", *rest[1:]
    if not scheme.endswith(":"):
      return "/".join(self.parts)  # A part of a URL.
    # A file:// has no host, and its path begins with a slash.
    start = f"{scheme}///" if scheme == "file:" else f"{scheme}//"
    return start + "/".join(rest)

  def resolve(self, strict: bool = False) -> "_UrlPath":
    del strict
    return self  # There are no links, and no working directory.


def is_url(path: PathLike) -> bool:
  return "://" in os.fspath(path)


def as_path(path: PathLike) -> Path:
  """Returns an object with the interface of `pathlib.Path`, also for a URL."""
  if "\0" in os.fspath(path):
    raise errors.UsageError(f"{os.fspath(path)!r} has a NUL, as no path can.")
  return _UrlPath(os.fspath(path)) if is_url(path) else Path(os.fspath(path))


@contextlib.contextmanager
def _one_line(what: str, path: PathLike, advice: str = "") -> Iterator[None]:
  """Turns file system errors in the block into a one-line `UsageError`."""
  kinds: tuple[type[Exception], ...] = (OSError,)
  if is_url(path):
    import tensorflow as tf

    kinds += (tf.errors.OpError,)
  try:
    yield
  except kinds as error:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    if isinstance(error, FileNotFoundError):
      reason = "No such file or directory"  # TensorFlow may say nothing.
    raise errors.UsageError(
      f"cannot {what} {path}: {reason.removesuffix('.')}{advice}."
    ) from error


def check_regular(path: PathLike) -> None:
  """Raises for a FIFO, a socket or a device: reading it may never end."""
  as_path(path)  # No NUL.
  # Not by epath, which takes whatever is not a directory for a file.
  if is_url(path) or not os.path.exists(path):
    return
  if os.path.isfile(path) or os.path.isdir(path):
    return
  raise errors.UsageError(
    f"{path} is not a regular file; copy what it holds to a file."
  )


def refuse_link(path: PathLike) -> None:
  """Raises for a symbolic link, which may lead a write anywhere."""
  if os.path.islink(path):
    raise errors.UsageError(
      f"{path} is a symbolic link, which is not followed; remove it."
    )


@contextlib.contextmanager
def open_binary(path: PathLike) -> Iterator[BinaryIO]:
  """Opens a file for reading; `OSError`s in the block become `UsageError`s."""
  check_regular(path)
  with _one_line("read", path), as_path(path).open("rb") as file:
    yield cast(BinaryIO, file)


def read_bytes(path: PathLike) -> bytes:
  with open_binary(path) as file:
    return file.read()


def read_text(path: PathLike) -> str:
  """Returns the content of a UTF-8 file, without its byte order mark."""
  data = read_bytes(path)
  try:
    return data.decode("utf-8-sig")
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise errors.UsageError(
      f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8; convert "
      "the file to UTF-8."
    ) from error


def read_json(path: PathLike) -> Any:
  """Returns the content of a JSON file; errors become `UsageError`s."""
  return parse_json(read_text(path), path)


def read_object(
  path: PathLike, missing_ok: bool = False, **kinds: type
) -> dict[str, Any]:
  """Returns a JSON object that has values of these types by these names."""
  if missing_ok and not as_path(path).exists():
    return {}
  content = read_json(path)
  if not isinstance(content, dict):
    raise errors.UsageError(f"{path}:1: not a JSON object.")
  for name, kind in kinds.items():
    value = content.get(name)
    if not isinstance(value, kind):
      raise errors.UsageError(
        f"{path}: {name!r} is {value!r:.60}, not {_JSON_NAMES[kind]}; was it "
        "edited, or is it another file?"
      )
  return content


def parse_json(text: str, path: PathLike, first: int = 1) -> Any:
  """Parses JSON; it begins on line `first` of the file `path`."""

  place = path if first == 1 else f"{path}:{first}"

  def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # Readers differ on which of them counts.
      names = [name for name, _ in pairs]
      twice = next(name for name in names if names.count(name) > 1)
      raise errors.UsageError(f"{place}: the key {twice!r:.60} occurs twice.")
    return found

  try:
    return json.loads(text, object_pairs_hook=unique)
  except errors.UsageError:
    raise
  except json.JSONDecodeError as error:
    line = first - 1 + error.lineno
    raise errors.UsageError(
      f"{path}:{line}: not JSON ({error.msg}, column {error.colno})."
    ) from error
  except (RecursionError, ValueError) as error:  # Deep, or endless digits.
    raise errors.UsageError(f"{place}: {errors.first_line(error)}.") from error


@contextlib.contextmanager
def local_copy(path: PathLike) -> Iterator[str]:
  """Yields a local path to a file, for code that does not support URLs."""
  source = as_path(path)
  if not is_url(source):
    yield str(source)
    return
  with tempfile.TemporaryDirectory() as folder:
    copy = os.path.join(folder, source.name)
    with _one_line("read", path):
      backend.tf_backend.copy(str(source), copy, overwrite=False)
    yield copy


def split(patterns: str | Sequence[str]) -> list[str]:
  """Returns the single patterns of one or several, each maybe with commas."""
  sources = [patterns] if isinstance(patterns, str) else patterns
  if not isinstance(sources, Sequence) or not all(
    isinstance(each, str) for each in sources
  ):
    raise errors.UsageError(
      f"{patterns!r:.60} is neither a pattern nor a list of patterns."
    )
  parts = [part.strip() for each in sources for part in each.split(",")]
  return [part for part in parts if part]


def refuse_existing(paths: Iterable[PathLike]) -> None:
  """Raises `UsageError` if one of the outputs already exists."""
  for path in paths:
    if as_path(path).exists():
      raise errors.UsageError(
        f"{path} is already there and is not overwritten; remove it or choose "
        "another output."
      )


def check_output_dir(path: PathLike, name: str) -> None:
  """Raises `UsageError` unless `path` is or can become an output directory.

  Whether a URL can be written to is not checked. The error calls it `name`.
  """
  place = as_path(path)
  reason = ""
  if is_url(place):
    with _one_line(f"use {name}", path):
      if place.exists() and not place.is_dir():
        reason = f"{place} is a file"
  else:
    place = place.absolute()
    while not os.path.lexists(place):
      place = place.parent
    if not place.is_dir():
      reason = f"{place} is a file"
    elif not os.access(place, os.W_OK | os.X_OK):
      reason = f"{place} cannot be written to"
    check_regular(os.path.join(path, "checkpoint"))  # TensorFlow reads it.
  if set("*?[") & set(os.fspath(path)):
    reason = "TensorFlow takes *, ? and [ for patterns"
  if reason:
    raise errors.UsageError(f"{name}={path}: {reason}; name another directory.")


@contextlib.contextmanager
def lock(directory: PathLike, seconds: float = 0.0) -> Iterator[None]:
  """Keeps other processes from working in a directory until the block ends.

  Waits for at most `seconds`. The lock of a process that died is free. A store
  (a URL) has no locks.
  """
  if is_url(directory):
    yield
    return
  place = pathlib.Path(directory)
  path = place / "run.lock"
  with _one_line("lock", place):
    place.mkdir(parents=True, exist_ok=True)
    refuse_link(path)
    held = filelock.FileLock(path)
    try:
      held.acquire(timeout=seconds)
    except filelock.Timeout as error:
      owner = path.read_text().strip() or "not known which"
      raise errors.UsageError(
        f"{place}: another process is working on this run ({owner}). Wait for "
        "it, or end it, and run the same command again."
      ) from error
    path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
  try:
    yield
  finally:
    path.unlink(missing_ok=True)
    held.release()
    with contextlib.suppress(OSError):  # Only if nothing was made in it.
      place.rmdir()


@contextlib.contextmanager
def _scratch(path: Path, is_dir: bool) -> Iterator[pathlib.Path]:
  """Yields a local scratch path that becomes `path` if the block succeeds.

  For a local `path` it is in the same directory, so that the last step is one
  rename. Its name ends in `.partial`; a killed process leaves it behind.
  """
  faults = ("write", path, "; choose another output")
  with _one_line(*faults):
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not by `tempfile`, which makes private files whatever the umask is.
    parent = tempfile.gettempdir() if is_url(path) else path.parent
    scratch = pathlib.Path(
      parent, f"{path.name}.{uuid.uuid4().hex[:8]}.partial"
    )
    scratch.mkdir() if is_dir else scratch.touch()
    mode = scratch.stat().st_mode
  try:
    yield scratch
    with _one_line(*faults):
      # A writer such as safetensors may have put a private file in its place.
      scratch.chmod(mode)
      if is_url(path):
        _upload(scratch, path)
      else:
        os.replace(scratch, path)
  finally:
    Path(scratch).rmtree(missing_ok=True)


def _upload(source: pathlib.Path, target: Path) -> None:
  """Copies a file or a folder to a URL; removes the copy if that fails."""
  found = [file for file in (source, *source.rglob("*")) if file.is_file()]
  store = backend.tf_backend
  try:
    for file in sorted(found, key=lambda file: (file.name in _LAST, file)):
      copy = target / str(file.relative_to(source))
      # Not every store replaces a file at once; all rename at once.
      partial = copy.with_name(f"{copy.name}.{os.getpid()}.partial")
      copy.parent.mkdir(parents=True, exist_ok=True)
      store.copy(str(file), str(partial), overwrite=True)
      store.replace(str(partial), str(copy))
  except BaseException:
    unfinished = target if source.is_dir() else partial
    unfinished.rmtree(missing_ok=True)
    raise


@contextlib.contextmanager
def complete_or_absent(path: PathLike) -> Iterator[str]:
  """Yields an empty local file that becomes `path` if the block succeeds."""
  with _scratch(as_path(path), is_dir=False) as scratch:
    yield str(scratch)


def write_bytes(path: PathLike, content: bytes) -> None:
  """Writes a file, complete or not at all."""
  with complete_or_absent(path) as scratch:
    pathlib.Path(scratch).write_bytes(content)


def write_text(path: PathLike, text: str) -> None:
  """Writes `text` as UTF-8, complete or not at all."""
  write_bytes(path, text.encode("utf-8"))


def write_json(path: PathLike, content: Any) -> None:
  """Writes `content` as readable JSON, complete or not at all."""
  text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
  write_text(path, text + "\n")


@contextlib.contextmanager
def new_directory(path: PathLike) -> Iterator[pathlib.Path]:
  """Yields a local scratch directory that becomes `path`, new, on success.

  Files are copied to a URL one by one, ending with those that mark the others
  as complete.
  """
  refuse_existing([path])
  with _scratch(as_path(path), is_dir=True) as scratch:
    yield scratch
