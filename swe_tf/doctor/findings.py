"""The possible outcomes of a check of `swe doctor`.

A check returns one line if all is well. It raises `UsageError` for a fault,
which keeps a run from starting or from doing what was intended, and `Warned`
for what may be intended.
"""

from swe_tf import errors


class Warned(errors.UsageError):
  """The run would start, but look at this first."""
