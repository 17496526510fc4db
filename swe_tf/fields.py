"""What the fields of a Model Garden config may be set to.

`conform` checks the names and types of overrides, which Model Garden does not:
it accepts any type, and any name in a list of tables. `check` holds the values
of a complete config against a table of limits.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import operator
import types
import typing
from typing import Any

from official.modeling.hyperparams import base_config
from official.modeling.hyperparams import oneof
from swe_tf import errors

_NAMES = {
  int: "an integer",
  float: "a number",
  bool: "true or false",
  str: "text",
}
# Encoders that train, but cannot share (docs/encoders.md): not recommended.
_NEVER_SHARED = ("albert", "xlnet")
_TOO_LARGE = {int: 2**63, float: 2**1024}


def conform(
  config: base_config.Config, overrides: Any, place: str = ""
) -> dict[str, Any]:
  """Checks overrides against a config and converts them to its types.

  A whole number such as 1e3 becomes an integer where one is expected. The
  strategy `off`, which YAML reads as false, becomes `off` again. The `place` of
  the config is for errors; it is empty for an experiment.
  """
  hints = _hints(type(config))
  # They say more than annotations: the class of each part, what may be None.
  values = {
    name: value
    for name, value in vars(config).items()
    if name not in base_config.Config.RESERVED_ATTR
  }
  known = list(dict.fromkeys((*hints, *values)))
  if not isinstance(overrides, Mapping):
    shown = "nothing" if overrides is None else repr(overrides)[:60]
    raise errors.UsageError(
      f"{place or 'an experiment'} is a table ({', '.join(known[:3])}, ...), "
      f"but it is set to {shown}; set its parameters."
    )
  found = {}
  for name, value in overrides.items():
    path = f"{place}.{name}".lstrip(".")
    with errors.part():
      if name not in known:
        hint = errors.nearest(name, known, f"it has {', '.join(known)}.")
        raise errors.UsageError(
          f"{place or 'an experiment'} has no parameter {name!r}; {hint}"
        )
      now = values.get(name)
      if name == "type" and isinstance(config, oneof.OneOfConfig) and value:
        others = [each for each in known if each not in (name, *_NEVER_SHARED)]
        if value not in known:
          _check_choice(path, value, others)
      found[name] = _convert(hints.get(name, Any), now, value, path)
  return found


def _hints(cls: Any) -> Mapping[str, Any]:
  return cls._get_annotations()  # pylint: disable=protected-access


def _is_table(annotation: Any) -> bool:
  """Whether this is a class of configs that declares its fields."""
  return (
    isinstance(annotation, type)
    and issubclass(annotation, base_config.Config)
    and bool(_hints(annotation))
  )


def _convert(annotation: Any, now: Any, value: Any, path: str) -> Any:
  """Converts a value to the type of its field; raises if it does not fit."""
  options = [annotation]
  if typing.get_origin(annotation) in (typing.Union, types.UnionType):
    options = list(typing.get_args(annotation))
  if value is None and (now is None or type(None) in options):
    return None
  if isinstance(now, base_config.Config):
    return conform(now, value, path)
  options = [each for each in options if each is not type(None)]
  # Some data configs annotate `input_path` as a str; lists work too.
  if len(options) != 1 or path.endswith(".input_path"):
    return value
  (kind,) = options
  if _is_table(kind):
    return conform(kind(), value, path)
  origin = typing.get_origin(kind)
  if isinstance(origin, type) and issubclass(origin, Sequence):
    of_tables = _is_table(item := typing.get_args(kind)[0])
    is_list = isinstance(value, (list, tuple))
    if not is_list or (
      of_tables and not all(isinstance(each, Mapping) for each in value)
    ):
      such = " of tables, such as [{a: 1}]" if of_tables else ", such as [1, 2]"
      raise errors.UsageError(f"{path} ({value!r}) must be a list{such}.")
    if item in _NAMES:
      return [
        _convert_plain(item, v, f"{path}[{i}]") for i, v in enumerate(value)
      ]
    if not of_tables:
      return value
    return [conform(item(), v, f"{path}[{i}]") for i, v in enumerate(value)]
  if kind is int and isinstance(now, float):
    kind = float
  return _convert_plain(kind, value, path) if kind in _NAMES else value


def _convert_plain(kind: type, value: Any, path: str) -> Any:
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if is_number and kind in (int, float) and abs(value) >= _TOO_LARGE[kind]:
    raise errors.UsageError(
      f"{path} ({repr(value)[:30]}) is too large for {_NAMES[kind]}."
    )
  if kind is int and is_number and float(value).is_integer():
    return int(value)
  if kind is float and is_number and math.isfinite(value):
    return float(value)  # Keras computes a rate of 1 in integers, and fails.
  if kind is bool and (isinstance(value, bool) or value in (0, 1)):
    return bool(value)
  if kind is str and (value is None or isinstance(value, str)):
    if value and "\0" in value:
      raise errors.UsageError(f"{path} ({value!r}) has a NUL; remove it.")
    return value
  if path == "runtime.distribution_strategy" and value is False:
    return "off"
  shown = "null" if value is None else repr(value)
  raise errors.UsageError(f"{path} ({shown}) must be {_NAMES[kind]}.")


@dataclasses.dataclass(frozen=True)
class Limit:
  """What the value of a field may be; unless `required`, it may be None."""

  least: float | None = None
  above: float | None = None
  below: float | None = None
  choices: tuple[str, ...] = ()
  required: bool = False

  def check(self, path: str, value: Any) -> None:
    """Raises `UsageError` unless the value is allowed."""
    if value is None:
      raise errors.UsageError(f"{path} is not set; choose a value.")
    if self.choices:
      _check_choice(path, value, self.choices)
      return
    bounds = {
      f"{word} {bound}": math.isfinite(value) and holds(value, bound)
      for word, bound, holds in (
        ("at least", self.least, operator.ge),
        ("above", self.above, operator.gt),
        ("below", self.below, operator.lt),
      )
      if bound is not None
    }
    if not all(bounds.values()):
      raise errors.UsageError(
        f"{path} ({str(value).removesuffix('.0')}) must be "
        f"{' and '.join(bounds)}."
      )


def _check_choice(path: str, value: Any, choices: Sequence[str]) -> None:
  if value not in choices:
    raise errors.UsageError(
      f"{path} ({value!r}) must be one of {', '.join(choices)}; "
      + errors.nearest(value, choices, "choose one of these.")
    )


def check(config: base_config.Config, limits: Mapping[str, Limit]) -> None:
  """Raises `UsageError` unless all fields are within their limits.

  In a path, `*` stands for the type that a one-of config chooses. Fields that
  the config does not have are skipped.
  """
  for path, limit in limits.items():
    value: Any = config
    names = path.split(".")
    for i, name in enumerate(names):
      names[i] = str(value.type) if name == "*" else name
      if value is None or not hasattr(value, names[i]):
        break
      value = getattr(value, names[i])
    else:
      if value is None and not limit.required:
        continue
      with errors.part():
        limit.check(".".join(names), value)
