"""How `swe doctor` writes its numbers and its warnings. Without TensorFlow."""

from swe_tf import errors


class Warned(errors.UsageError):
  """The run would start, but look at this first."""


def size(count: float) -> str:
  """Formats a number of bytes.

  >>> size(1_345_000_000)
  '1.34 GB'
  """
  for unit in ("B", "kB", "MB", "GB", "TB"):
    if abs(count) < 1000 or unit == "TB":
      break
    count /= 1000
  return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"
