"""The axes of a study: what a value on each of them changes in an experiment.

`method`, `units`, `tau`, `width`, `learning_rate`, `steps` and `seed` are known
by name. Any other axis of a study is a table: the names of its values, each
with its overrides. Imports no TensorFlow.
"""

from collections.abc import Mapping
import re
import sys
from typing import Any

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry

KNOWN = ("method", "units", "tau", "width", "steps", "learning_rate", "seed")
_UNITS = re.compile(r"[1-9]\d*(x\d+)?")  # Layers a unit, and units.
_LOWEST = {"width": 1, "steps": 1, "learning_rate": 0, "seed": 0, "tau": 0}


def check_value(axis: str, value: Any) -> None:
  """Raises `UsageError` unless `value` is valid on the axis."""
  if axis == "method":
    known = catalog.methods()
    if not isinstance(value, str) or value not in known:
      other = (
        "register another one in a plug-in, or give the axis another "
        "name, and overrides for each value."
      )
      raise errors.UsageError(
        f"axes.method: {value!r} is not one of {', '.join(known)}; "
        + errors.nearest(value, known, other)
      )
  elif axis == "units":
    if not _UNITS.fullmatch(str(value)):
      raise errors.UsageError(
        f"axes.units: {value!r} is neither like 2x12 nor a number of layers."
      )
  else:
    number = _fraction(value) if axis == "tau" else value
    is_number = isinstance(number, (int, float)) and not isinstance(value, bool)
    low, high = _LOWEST[axis], 1 if axis == "tau" else sys.float_info.max
    if not is_number or not low <= number <= high:
      raise errors.UsageError(
        f"axes.{axis}: {number!r:.60} is not a number between {low:g} and "
        f"{high:g}."
      )


def _fraction(value: Any) -> Any:
  """Returns tau as a fraction of the steps, from 0.25 or '25%'."""
  if isinstance(value, str) and re.fullmatch(r"(\d+\.?\d*|\.\d+) *%", value):
    return float(value.rstrip(" %")) / 100
  return value


def overrides_of(
  axis: str, value: Any, encoder: registry.Encoder
) -> Mapping[str, Any]:
  """Returns the overrides for a checked value of a known axis.

  As in section 5.3.1, an encoder that becomes wider has as many heads, and the
  same ratio to the feed-forward layer.
  """
  if axis == "method":
    return {"task": catalog.methods()[value].task}
  if axis == "units":
    unit, _, count = str(value).partition("x")
    layers = int(unit) * int(count or 0)
    if count and layers != encoder.num_layers:
      raise errors.UsageError(
        f"units {value} are {layers} layers, but the model has "
        f"{encoder.num_layers}."
      )
    return {"task": {"sharing": {"unit_size": int(unit)}}}
  if axis == "tau":
    tau = {"untie_fraction": float(_fraction(value)), "untie_step": None}
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
  inner = round(value * size.intermediate_size / size.hidden_size)
  wider = encoder.overrides(hidden_size=value, intermediate_size=inner)
  return {"task": wider}


def without_ignored(point: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a point without the axes that do not matter to its method.

  SWE that shares for none or all of the steps becomes the baseline or ALBERT.
  Tau becomes a fraction: 0.25 and '25%' are the same point.
  """
  point = dict(point)
  if "tau" in point:
    tau = point["tau"] = float(_fraction(point["tau"]))
    if point.get("method") == catalog.SWE:
      named = {0.0: catalog.BASELINE, 1.0: catalog.ALBERT}
      point["method"] = named.get(tau, catalog.SWE)
  method = catalog.methods().get(point.get("method", ""))
  ignored = method.ignores if method else ()
  return {axis: v for axis, v in point.items() if axis not in ignored}


def label(axis: str, value: Any) -> str:
  """Returns a value as it appears in the name of a run.

  >>> label("seed", 20240101), label("learning_rate", 3e-5), label("tau", 0.25)
  ('seed20240101', 'lr3e-05', 'tau25')
  """
  if not isinstance(value, (int, float)):
    return str(value)
  number = round(100 * value, 9) if axis == "tau" else value
  short = f"{number:g}"
  if float(short) != number:  # With all its digits, so that names differ.
    short = repr(number)
  name = {"learning_rate": "lr"}.get(axis, axis if axis in KNOWN else "")
  return f"{name}{short}"
