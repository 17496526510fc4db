"""The shapes of configs, read from the config classes.

A shape is what `fields` checks overrides against: the parameters of each config
class and their kinds. `tests/config_table.py` writes the shapes of our
experiments to `fields.json`, for checks without TensorFlow.
"""

from collections.abc import Mapping, Sequence
import functools
import itertools
import types
import typing
from typing import Any

from official.modeling.hyperparams import base_config
from official.modeling.hyperparams import oneof
from swe_tf.configs import fields

_PLAIN = {int: "int", float: "float", bool: "bool", str: "str"}


def shape_of(
  config: base_config.Config,
  classes: dict[str, Mapping[str, str]] | None = None,
) -> fields.Shape:
  """Returns the shape of a config and of everything in it.

  Args:
    config: The config. Its values say more than the annotations: the subclass
      of each part, and what may be None.
    classes: Classes that are already known; new ones are added.
  """
  classes = {} if classes is None else classes
  return fields.Shape(_add(classes, type(config), config), classes)


def _add(
  classes: dict[str, Mapping[str, str]],
  cls: Any,
  config: base_config.Config | None,
) -> str:
  """Adds a class and the classes of its parts; returns its name.

  If its parts differ from those of a known class of that name, the name gets a
  number.
  """
  name = f"{cls.__module__}.{cls.__qualname__}"
  hints = _hints(cls)
  values = {
    key: value
    for key, value in vars(config if config is not None else cls()).items()
    if key not in base_config.Config.RESERVED_ATTR
  }
  found = {}
  for key in (*hints, *(key for key in values if key not in hints)):
    found[key] = _kind(classes, hints.get(key, Any), values.get(key))
  if "input_path" in found:
    found["input_path"] = fields.ANY  # Some classes say str; lists work too.
  if issubclass(cls, oneof.OneOfConfig):
    found["type"] = fields.CHOICE
  names = (f"{name}#{n}" if n > 1 else name for n in itertools.count(1))
  return next(n for n in names if classes.setdefault(n, found) == found)


@functools.cache
def _hints(cls: Any) -> Mapping[str, Any]:
  return cls._get_annotations()  # pylint: disable=protected-access


def _kind(
  classes: dict[str, Mapping[str, str]], annotation: Any, value: Any
) -> str:
  """Returns the kind of a parameter, as `fields` defines kinds."""
  options = [annotation]
  if typing.get_origin(annotation) in (typing.Union, types.UnionType):
    options = list(typing.get_args(annotation))
  null = "?" if value is None or type(None) in options else ""
  options = [each for each in options if each is not type(None)]
  if isinstance(value, base_config.Config):
    return f"@{_add(classes, type(value), value)}{null}"
  if len(options) != 1:
    return fields.ANY
  (option,) = options
  if option in _PLAIN:
    is_other = option is int and isinstance(value, float)
    return f"{'float' if is_other else _PLAIN[option]}{null}"
  if _is_config(option):
    return f"@{_add(classes, option, None)}{null}" if _hints(option) else "any"
  origin = typing.get_origin(option)
  if isinstance(origin, type) and issubclass(origin, Sequence):
    inner = typing.get_args(option)[0]
    if _is_config(inner) and _hints(inner):
      return f"[@{_add(classes, inner, None)}]{null}"
    return f"list{null}"
  return fields.ANY


def _is_config(annotation: Any) -> bool:
  return isinstance(annotation, type) and issubclass(
    annotation, base_config.Config
  )
