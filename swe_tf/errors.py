"""The error that reaches a person: what is wrong, the value, what to do."""


class UsageError(ValueError):
  """Bad input, found before any work was done.

  The commands print its message alone, without a stack trace.
  """
