"""Errors meant for people: what is wrong, the value, what to do.

`swe_tf.cli` prints the message alone, without a stack trace.
"""


class UsageError(ValueError):
  """Bad input, found before any work was done; the exit code is 2."""


class Failed(RuntimeError):
  """The input is fine, but the work did not succeed; the exit code is 1."""
