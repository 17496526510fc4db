"""The axes of a study: what a value on each of them changes in an experiment.

`method`, `units`, `tau`, `width`, `learning_rate`, `steps` and `seed` are known
by name. Any other axis of a study is a table: the names of its values, each
with its overrides. Imports no TensorFlow.
"""

from collections.abc import Mapping
import re
from typing import Any

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry

Overrides = Mapping[str, Any]

KNOWN = ("method", "units", "tau", "width", "steps", "learning_rate", "seed")


def _number(axis: str, value: Any, low: float, high: float = float("inf")):
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if not is_number or not low <= value <= high:
    raise errors.UsageError(
      f"axes.{axis}: {value!r} is not a number between {low:g} and {high:g}."
    )
  return value


def parse_tau(value: Any) -> float:
  """Returns tau as a fraction of the steps, from 0.25 or '25%'."""
  if isinstance(value, str) and re.fullmatch(r"[\d.]+ *%", value):
    value = float(value.rstrip(" %")) / 100
  return float(_number("tau", value, 0.0, 1.0))


def parse_units(value: Any) -> tuple[int, int | None]:
  """Returns the layers per unit and the number of units, from '2x12' or 2."""
  if isinstance(value, int):
    return int(_number("units", value, 1)), None
  match = re.fullmatch(r"(\d+)x(\d+)", str(value))
  if not match:
    raise errors.UsageError(
      f"axes.units: {value!r} is neither like 2x12 nor a number of layers."
    )
  return int(match[1]), int(match[2])


def check_units(value: Any, num_layers: int | None) -> None:
  """Raises unless these units make up a model of `num_layers` layers."""
  size, count = parse_units(value)
  if count is not None and size * count != num_layers:
    raise errors.UsageError(
      f"units {value} are {size * count} layers, but the model has "
      f"{num_layers}."
    )


def check_value(axis: str, value: Any) -> None:
  """Raises unless `value` is valid on the axis."""
  if axis == "method" and value not in catalog.methods():
    other = (
      "register another one in a plug-in, or give the axis another "
      "name, and overrides for each value."
    )
    raise errors.UsageError(
      f"axes.method: {value!r} is not one of {', '.join(catalog.methods())}; "
      + errors.nearest(value, catalog.methods(), other)
    )
  if axis == "units":
    parse_units(value)
  elif axis == "tau":
    parse_tau(value)
  elif axis in ("width", "steps"):
    _number(axis, value, 1)
  elif axis == "learning_rate":
    _number(axis, value, 0.0)
  elif axis == "seed":
    _number(axis, value, 0)


def overrides_of(axis: str, value: Any, encoder: registry.Encoder) -> Overrides:
  """Returns the overrides for a value of a known axis.

  Args:
    axis: The axis.
    value: The value, already checked.
    encoder: The encoder before the change. As in section 5.3.1, a wider one
      has as many heads, and the same ratio to the feed-forward layer.
  """
  if axis == "method":
    return {"task": catalog.methods()[value].task}
  if axis == "units":
    return {"task": {"sharing": {"unit_size": parse_units(value)[0]}}}
  if axis == "tau":
    tau = {"untie_fraction": parse_tau(value), "untie_step": None}
    return {"task": {"sharing": tau}}
  if axis == "seed":
    return {"task": {"seed": value, "train_data": {"seed": value}}}
  if axis == "steps":
    return {"trainer": {"train_steps": value}}
  if axis == "learning_rate":
    rate = {"polynomial": {"initial_learning_rate": value}}
    return {"trainer": {"optimizer_config": {"learning_rate": rate}}}
  size = encoder.size
  if value % size.num_attention_heads:
    raise errors.UsageError(
      f"axes.width: {value} is not a multiple of the number of heads "
      f"({size.num_attention_heads})."
    )
  ratio = size.intermediate_size / size.hidden_size
  return {
    "task": encoder.overrides(
      hidden_size=value, intermediate_size=round(value * ratio)
    )
  }


def without_ignored(point: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a point without the axes that do not matter to its method.

  SWE that shares for none or all of the steps becomes the baseline or ALBERT.
  Tau becomes a fraction: 0.25 and '25%' are the same point.
  """
  point = dict(point)
  if "tau" in point:
    tau = point["tau"] = parse_tau(point["tau"])
    if point.get("method") == catalog.SWE:
      named = {0.0: catalog.BASELINE, 1.0: catalog.ALBERT}
      point["method"] = named.get(tau, catalog.SWE)
  method = catalog.methods().get(point.get("method", ""))
  ignored = method.ignores if method else ()
  return {axis: v for axis, v in point.items() if axis not in ignored}


def label(axis: str, value: Any) -> str:
  """Returns a value as it appears in the name of a run.

  >>> label("seed", 20240101), label("learning_rate", 3e-5)
  ('seed20240101', 'lr3e-05')
  """
  if axis == "tau":
    return f"tau{_short(round(100 * parse_tau(value), 9))}"
  if not isinstance(value, (int, float)):
    return str(value)
  name = {"learning_rate": "lr"}.get(axis, axis if axis in KNOWN else "")
  return f"{name}{_short(value)}"


def _short(value: float) -> str:
  """Returns a number with as many digits as it has, so that names differ."""
  short = f"{value:g}"
  return short if float(short) == value else repr(value)
