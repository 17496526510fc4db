"""Files on the way in and out: faults told in one line, outputs all or nothing.

Shared by the commands that read GLUE and SQuAD files, score them and convert
checkpoints. Imports no TensorFlow, so that a fault is told at once. Paths are
local ones.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools
import json
import os
import pathlib
import sys
import tempfile
from typing import Any

from swe_tf import errors

PathLike = str | os.PathLike


def one_line_errors(command: str):
  """Decorates a `main(argv)`: a `UsageError` becomes a line and status 1."""

  def decorate(main):

    @functools.wraps(main)
    def run(argv):
      try:
        return main(argv)
      except errors.UsageError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return 1

    return run

  return decorate


def require(**flag_values: Any) -> None:
  """Raises unless every flag has a value.

  Args:
    **flag_values: The flags by name.

  Raises:
    UsageError: If one is None or empty.
  """
  for name, value in flag_values.items():
    if not value:
      raise errors.UsageError(f"--{name} is missing; see --helpshort.")


def refuse_arguments(arguments: Sequence[str]) -> None:
  """Raises `UsageError` if there are arguments that are no flags."""
  if arguments:
    raise errors.UsageError(
      f"unexpected argument {arguments[0]!r}; flags are --name=value."
    )


def read_text(path: PathLike) -> str:
  """Returns a UTF-8 file without its byte order mark.

  Args:
    path: The file.

  Raises:
    UsageError: If it is not there or not UTF-8.
  """
  try:
    data = pathlib.Path(path).read_bytes()
  except OSError as error:
    raise errors.UsageError(f"cannot read {path}: {error.strerror}.") from error
  try:
    return data.decode("utf-8-sig")
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise errors.UsageError(
      f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8; convert "
      "the file to UTF-8."
    ) from error


def read_json(path: PathLike) -> Any:
  """Returns the content of a JSON file; faults are `UsageError`s."""
  text = read_text(path)
  try:
    return json.loads(text)
  except json.JSONDecodeError as error:
    raise errors.UsageError(
      f"{path}:{error.lineno}: not JSON ({error.msg}, column {error.colno})."
    ) from error


def refuse_existing(paths: Iterable[PathLike]) -> None:
  """Raises `UsageError` if one of the outputs-to-be is already there."""
  for path in paths:
    if os.path.exists(path):
      raise errors.UsageError(
        f"{path} is already there and is not overwritten; remove it or "
        "choose another output."
      )


@contextlib.contextmanager
def complete_or_absent(path: PathLike) -> Iterator[str]:
  """Yields a scratch path that becomes `path` only if the block succeeds.

  Args:
    path: Where the finished file is to be. Its directory is made.

  Yields:
    A path in the same directory, so that the last step is one rename.
  """
  path = pathlib.Path(path)
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
  except OSError as error:
    raise errors.UsageError(
      f"cannot write {path}: {error.strerror}; choose another output."
    ) from error
  os.close(handle)
  try:
    yield scratch
    # mkstemp makes private files; an output is as public as the umask says.
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(scratch, 0o666 & ~umask)
    os.replace(scratch, path)
  except BaseException:
    os.unlink(scratch)
    raise


def write_json(path: PathLike, content: Any) -> None:
  """Writes `content` as readable JSON, complete or not at all."""
  with complete_or_absent(path) as scratch:
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    pathlib.Path(scratch).write_text(text + "\n", encoding="utf-8")
