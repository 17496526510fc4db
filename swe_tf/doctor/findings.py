"""How `swe doctor` writes its numbers and its warnings. Without TensorFlow."""

from rich import filesize

from swe_tf import errors


class Warned(errors.UsageError):
  """The run would start, but look at this first."""


def size(count: float) -> str:
  """Formats a number of bytes.

  >>> size(1_345_000_000)
  '1.34 GB'
  """
  return filesize.decimal(round(count), precision=2)
