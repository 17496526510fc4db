"""`--params_override` as nested tables, read without TensorFlow.

Model Garden reads it as `a.b=1,c.d=x`, as YAML, or as the name of a YAML file,
in this order. A test compares what is read here with what Model Garden reads.
"""

import re
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files

_ITEM = re.compile(
  r"""
  (?P<name> [A-Za-z][\w.]*) (?P<index> \[\d*\])? \s* = \s*
  (?P<value> '[^']*' | "[^"]*" | \[[^\]]*\] | [^,\[]*)
  (?: ,\s* | $)
  """,
  re.VERBOSE,
)
_FLAG = "--params_override"


def parse(text: str | None, flag: str = _FLAG) -> dict[str, Any] | None:
  """Parses overrides.

  Args:
    text: The value of the flag; may be empty.
    flag: The name of the flag in errors.

  Returns:
    Nested tables; None if the text sets single elements of a list, which only
    Model Garden can read.

  Raises:
    UsageError: If the text is neither parameters nor a file of them.
  """
  if not text:
    return {}
  items, rest = _items(text)
  if not rest:
    if any(index for _, index, _ in items):
      return None
    return _nested([(n, _value(n, v, flag)) for n, _, v in items], flag)
  try:
    found = yaml_files.parse(text, flag)
  except errors.UsageError:
    found = None
    if not items and text.lstrip().startswith("{"):
      raise
  if isinstance(found, dict):
    return found
  if not items and files.as_path(text).is_file():
    found = yaml_files.read(text)
    if isinstance(found, dict):
      return found
  raise errors.UsageError(
    f"{flag}: {rest!r} is not NAME=VALUE; separate parameters by commas, and "
    "put a value that has commas in quotes."
  )


def _items(text: str) -> tuple[list[tuple[str, str | None, str]], str]:
  """Returns names, indices and values, and the rest that does not parse."""
  items: list[tuple[str, str | None, str]] = []
  place = 0
  while place < len(text):
    match = _ITEM.match(text, place)
    if match is None:
      return items, text[place:]
    items.append((match["name"], match["index"], match["value"]))
    place = match.end()
  return items, ""


def _value(name: str, text: str, flag: str) -> Any:
  # As in Model Garden, what may be a path or a URL is not read as YAML.
  if text[:1] in ("g", "s", ":", "/"):
    return text
  try:
    return yaml_files.parse(f"{{value: {text}}}", flag)["value"]
  except errors.UsageError as error:
    raise errors.UsageError(
      f"{flag}: the value of {name} ({text}) is not YAML; put it in quotes."
    ) from error


def _nested(items: list[tuple[str, Any]], flag: str) -> dict[str, Any]:
  found: dict[str, Any] = {}
  for name, value in items:
    *above, last = name.split(".")
    table = found
    for key in above:
      table = table.setdefault(key, {})
      if not isinstance(table, dict):
        raise errors.UsageError(
          f"{flag}: {name} is set, and so is the table that it belongs to; set "
          "only one of them."
        )
    if isinstance(table.get(last), dict) and not isinstance(value, dict):
      raise errors.UsageError(
        f"{flag}: {name} is set, and so is the table of this name; set one."
      )
    table[last] = value
  return found
