"""The parameters of an experiment and their kinds. Imports no TensorFlow.

Overrides are checked against a shape: that of a live config (`describe.py`), or
one from `fields.json`, which has the shapes and default values of our
experiments. `tests/config_table.py` writes it, and a test keeps it in step with
the classes.
"""

from collections.abc import Mapping
import dataclasses
import functools
import json
import math
import pathlib
from typing import Any, NoReturn

from swe_tf import errors

# The kinds are int, float, bool, str and list; `@CLASS` is a table, `[@CLASS]`
# a list of tables, and a final `?` allows null. A CHOICE is the name of another
# parameter of the table; ANY is not checked.
ANY, CHOICE = "any", "choice"

_STRATEGY = "runtime.distribution_strategy"
_TABLE = pathlib.Path(__file__).with_name("fields.json")
_NAMES = {
  "int": "an integer",
  "float": "a number",
  "bool": "true or false",
  "str": "text",
  "list": "a list, such as [1, 2]",
}


@dataclasses.dataclass(frozen=True)
class Shape:
  """The parameters of a config.

  Attributes:
    root: The name of its class.
    classes: The kind of each parameter, by the name of the class.
  """

  root: str
  classes: Mapping[str, Mapping[str, str]]


@functools.cache
def table() -> Mapping[str, Any]:
  """Returns `fields.json`.

  Its keys are `classes`, as in `Shape`; `experiments`, with `root` and `values`
  of each of ours; `others`, the names of Model Garden's experiments; and `gin`,
  the parameters of each configurable, or null if it takes any.
  """
  return json.loads(_TABLE.read_text(encoding="utf-8"))


def shape_of(experiment: str) -> Shape | None:
  """Returns the shape of one of our experiments, or None for any other."""
  found = table()["experiments"].get(experiment)
  return Shape(found["root"], table()["classes"]) if found else None


def values_of(experiment: str) -> dict[str, Any]:
  """Returns the default values of one of our experiments, as nested tables."""
  return json.loads(json.dumps(table()["experiments"][experiment]["values"]))


def sharing_fields(table_name: str) -> Mapping[str, str]:
  """Returns the parameters of `task.sharing` or `task.growth`."""
  classes = table()["classes"]
  for kinds in classes.values():
    if table_name in kinds:
      return classes[kinds[table_name].removeprefix("@")]
  raise KeyError(table_name)


def as_table(overrides: Any) -> Mapping[str, Any]:
  """Returns overrides if they are a table; raises `UsageError` otherwise."""
  if isinstance(overrides, Mapping):
    return overrides
  kind = "nothing" if overrides is None else repr(overrides)
  raise errors.UsageError(
    "parameters are a table, such as trainer: {train_steps: 10}, but this is "
    f"{kind[:60]}."
  )


def tidy(shape: Shape, overrides: Any, source: str = "") -> dict[str, Any]:
  """Checks overrides against a config and converts them to its types.

  A whole number such as 1e3 becomes an integer where one is expected. The
  strategy `off`, which YAML reads as false, becomes `off` again.

  Args:
    shape: The parameters of the config.
    overrides: Nested tables.
    source: Where they come from, for errors.

  Raises:
    UsageError: If a parameter does not exist, or its value is not allowed.
  """
  before = f"{source}: " if source else ""
  try:
    return _table(shape.classes, shape.root, as_table(overrides), "")
  except errors.UsageError as error:
    raise errors.UsageError(f"{before}{error}") from error


def _table(
  classes: Mapping[str, Mapping[str, str]],
  name: str,
  overrides: Mapping[str, Any],
  place: str,
) -> dict[str, Any]:
  known = classes[name]
  found = {}
  for key, value in overrides.items():
    path = f"{place}.{key}".lstrip(".")
    if key not in known:
      hint = errors.nearest(key, known, f"it has {', '.join(known)}.")
      what = place or "an experiment"
      raise errors.UsageError(f"{what} has no parameter {key!r}; {hint}")
    found[key] = _value(classes, known[key], value, path)
    if known[key] == CHOICE and value is not None:
      choices = [other for other in known if other != key]
      if value not in choices:
        one_of = f"one of {', '.join(choices)}"
        raise errors.UsageError(
          f"{path} ({value!r}) must be {one_of}; "
          + errors.nearest(value, choices, "choose one of these.")
        )
  return found


def _value(
  classes: Mapping[str, Mapping[str, str]], kind: str, value: Any, path: str
) -> Any:
  if kind in (ANY, CHOICE) or (value is None and kind.endswith("?")):
    return value
  kind = kind.removesuffix("?")
  if kind.startswith("@"):
    if isinstance(value, Mapping):
      return _table(classes, kind[1:], value, path)
    some = ", ".join(list(classes[kind[1:]])[:3])
    raise errors.UsageError(
      f"{path} is a table ({some}, ...), but it is set to {value!r}; set its "
      "parameters."
    )
  if kind.startswith("[@"):
    is_list = isinstance(value, (list, tuple))
    if not is_list or not all(isinstance(each, Mapping) for each in value):
      raise errors.UsageError(
        f"{path} ({value!r}) must be a list of tables, such as [{{a: 1}}]."
      )
    return [
      _table(classes, kind[2:-1], each, f"{path}[{index}]")
      for index, each in enumerate(value)
    ]
  return _plain(kind, value, path)


def _plain(kind: str, value: Any, path: str) -> Any:
  """Converts a value to its kind; raises if it does not fit."""
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if kind == "int" and is_number and float(value).is_integer():
    return int(value)
  if kind == "float" and is_number and not math.isnan(value):
    return value
  if kind == "bool" and (isinstance(value, bool) or value in (0, 1)):
    return bool(value)
  if kind == "list" and isinstance(value, (list, tuple)):
    return value
  if kind == "str":
    if value is None or isinstance(value, str):
      return value
    if path == _STRATEGY and value is False:
      return "off"
  return _refuse(kind, value, path)


def _refuse(kind: str, value: Any, path: str) -> NoReturn:
  hint = ""
  if kind in ("int", "float") and isinstance(value, str):
    try:
      number = float(value)
      hint = f" YAML reads this as text: write {number:.12g} without quotes."
    except ValueError:
      pass
  elif kind == "str" and isinstance(value, (bool, int, float)):
    hint = f" YAML reads this as {type(value).__name__}: put it in quotes."
  shown = "null" if value is None else repr(value)
  raise errors.UsageError(f"{path} ({shown}) must be {_NAMES[kind]}.{hint}")
