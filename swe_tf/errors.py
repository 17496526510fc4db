"""Errors meant for people: what is wrong, the value, what to do.

`swe_tf.cli` prints the message alone, without a stack trace.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
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


# What `keep` has found so far; None outside of it.
_kept: list[UsageError] | None = None
_earlier: Sequence[UsageError] = ()


@contextlib.contextmanager
def keep(earlier: Sequence[UsageError] = ()) -> Iterator[list[UsageError]]:
  """Yields a list for the faults of all `part`s inside, which do not raise.

  What else is raised there is taken for a consequence of these faults, or of
  the `earlier` ones, if there are any.
  """
  global _kept, _earlier
  before = _kept, _earlier
  _kept, _earlier = [], earlier
  try:
    yield _kept
  finally:
    _kept, _earlier = before


@contextlib.contextmanager
def part(place: str = "") -> Iterator[None]:
  """Encloses a check that those after it do not need.

  Its faults get `place` in front. The first one is raised as usual; inside of
  `keep` it ends this block alone, so that the others are found too.
  """
  first = len(_kept or ())
  try:
    yield
  except UsageError as error:
    if _kept is None:
      raise type(error)(f"{place}{error}") from error
    _kept.append(error)
  except Exception:
    if not (_kept or _earlier):
      raise
  if _kept and place:
    _kept[first:] = [type(each)(f"{place}{each}") for each in _kept[first:]]


def fault(message: str) -> None:
  """Raises a fault that is a `part` of its own."""
  with part():
    raise UsageError(message)


def nearest(
  name: object, known: Iterable[str], otherwise: str, cutoff: float = 0.6
) -> str:
  """Returns the end of an error message about an unknown name.

  >>> nearest("fixd", ["fixed", "staged"], "see the list.")
  'did you mean fixed?'

  `cutoff` is the similarity, from 0 to 1, below which it is `otherwise`.
  """
  known, text = list(known), str(name)
  close = [each for each in known if text[2:] and each.startswith(text)]
  close = close or difflib.get_close_matches(text, known, 1, cutoff)
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
