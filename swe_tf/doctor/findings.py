"""What a check of `swe doctor` can come to: a line that says how it is.

A check returns the line. It raises `UsageError` for a fault, which keeps a run
from starting or from being what was meant, and `Warned` for what may be meant.
"""

from swe_tf import errors


class Warned(errors.UsageError):
  """The run would start, but look at this first."""
