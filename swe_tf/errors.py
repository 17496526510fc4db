"""Errors meant for people: what is wrong, the value, what to do.

`swe_tf.cli` prints the message alone, without a stack trace.
"""

from collections.abc import Iterable
import difflib
import errno
import os
import re

# Graph details that TensorFlow puts around its actual message.
_GRAPH = re.compile(r"\{\{[^}]*\}\}\s*|\s*\[(Op:|\[).*")

_FULL = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))


class UsageError(ValueError):
  """Bad input, found before any work was done; the exit code is 2."""


class Failed(RuntimeError):
  """The input is fine, but the work did not succeed; the exit code is 1."""


def nearest(
  name: object, known: Iterable[str], otherwise: str, cutoff: float = 0.6
) -> str:
  """Returns the end of an error message about an unknown name.

  >>> nearest("fixd", ["fixed", "staged"], "see the list.")
  'did you mean fixed?'

  Args:
    name: The unknown name.
    known: The names that exist.
    otherwise: What to say if none of them is close.
    cutoff: The similarity that counts as close, from 0 to 1.
  """
  close = difflib.get_close_matches(str(name), list(known), 1, cutoff)
  return f"did you mean {close[0]}?" if close else otherwise


def first_line(error: BaseException) -> str:
  """Returns the message of a third-party error, to quote within one line."""
  # TensorFlow keeps its message here, and something else in `args`.
  text = str(getattr(error, "message", ""))
  # A KeyError shows its only argument in quotes.
  text = text or str(error.args[0] if len(error.args) == 1 else error)
  lines = [_GRAPH.sub("", line).strip() for line in text.splitlines()]
  return next(filter(None, lines), type(error).__name__).rstrip(".")


def is_full(error: BaseException) -> bool:
  """Whether a disk or a quota is full, whichever library says so."""
  return any(text in str(error) for text in _FULL)
