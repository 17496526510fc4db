"""The axes of a study: what a value on each of them changes in an experiment.

`method`, `units`, `tau`, `width`, `learning_rate`, `steps` and `seed` are known
by name. Any other axis of a study is a table of its own: values by name, each
with the overrides that it stands for. Imports no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from swe_tf import errors

Overrides = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Method:
  """A way to train.

  Attributes:
    task: What it sets below `task`.
    ignores: The axes that do not matter to it. A study in which they differ
      has one run of this method for all their values.
  """

  task: Overrides
  ignores: frozenset[str] = frozenset()


def _sharing(ignores=(), **fields) -> Method:
  return Method({"sharing": fields}, frozenset(ignores))


def _growth(method: str) -> Method:
  return Method(
    {"sharing": {"mode": "none"}, "growth": {"method": method}},
    frozenset(["tau", "units"]),
  )


METHODS: dict[str, Method] = {
  "baseline": _sharing(["tau", "units"], mode="none"),
  "swe": _sharing(mode="swe"),
  "albert": _sharing(["tau"], mode="swe", untie_fraction=1.0, untie_step=None),
  "adaptive": _sharing(["tau"], mode="swe", rule="adaptive"),
  "split": _sharing(["tau"], mode="swe", rule="split"),
  "reparameterize": _sharing(["tau"], mode="reparameterize"),
  "stem_branch": _sharing(["tau"], mode="stem_branch"),
  "net2net": _growth("net2net"),
  "stacking": _growth("stacking"),
}


def _number(axis: str, value: Any, low: float, high: float = float("inf")):
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if not is_number or not low <= value <= high:
    raise errors.UsageError(
      f"axes.{axis}: {value!r} is not a number between {low:g} and {high:g}."
    )
  return value


def parse_tau(value: Any) -> float:
  """Returns tau as a fraction of the steps, of 0.1 or '10%'."""
  if isinstance(value, str) and re.fullmatch(r"[\d.]+ *%", value):
    value = float(value.rstrip(" %")) / 100
  return float(_number("tau", value, 0.0, 1.0))


def parse_units(value: Any) -> tuple[int, int | None]:
  """Returns the layers of a unit and the number of units, of '2x12' or 2."""
  if isinstance(value, int):
    return int(_number("units", value, 1)), None
  match = re.fullmatch(r"(\d+)x(\d+)", str(value))
  if not match:
    raise errors.UsageError(
      f"axes.units: {value!r} is neither like 2x12 nor a number of layers."
    )
  return int(match[1]), int(match[2])


def check_value(axis: str, value: Any) -> None:
  """Raises unless `value` can stand on the axis."""
  if axis == "method" and value not in METHODS:
    raise errors.UsageError(
      f"axes.method: {value!r} is none of {', '.join(METHODS)}. For another "
      "one, give the axis another name, and overrides for each value."
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


def overrides_of(axis: str, value: Any, encoder) -> Overrides:
  """Returns what a value of a known axis changes.

  Args:
    axis: The axis.
    value: The value, checked.
    encoder: The encoder's config before the change. A wider one has more heads
      of the same size, and the same ratio to the feed-forward layer.
  """
  if axis == "method":
    return {"task": METHODS[value].task}
  if axis == "units":
    return {"task": {"sharing": {"unit_size": parse_units(value)[0]}}}
  if axis == "tau":
    return {
      "task": {
        "sharing": {"untie_fraction": parse_tau(value), "untie_step": None}
      }
    }
  if axis == "seed":
    return {"task": {"seed": value, "train_data": {"seed": value}}}
  if axis == "steps":
    return {"trainer": {"train_steps": value}}
  if axis == "learning_rate":
    return {
      "trainer": {
        "optimizer_config": {
          "learning_rate": {"polynomial": {"initial_learning_rate": value}}
        }
      }
    }
  heads = encoder.num_attention_heads * value / encoder.hidden_size
  if heads != int(heads):
    size = encoder.hidden_size // encoder.num_attention_heads
    raise errors.UsageError(
      f"axes.width: {value} is no multiple of the size of a head ({size})."
    )
  ratio = encoder.intermediate_size / encoder.hidden_size
  return {
    "task": {
      "model": {
        "encoder": {
          "any": {
            "hidden_size": value,
            "num_attention_heads": int(heads),
            "intermediate_size": round(value * ratio),
          }
        }
      }
    }
  }


KNOWN = ("method", "units", "tau", "width", "steps", "learning_rate", "seed")


def without_ignored(point: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a point without the axes that do not matter to its method.

  Sharing for none or for all of the steps is another method by name.
  """
  point = dict(point)
  if point.get("method") == "swe" and "tau" in point:
    named = {0.0: "baseline", 1.0: "albert"}
    point["method"] = named.get(parse_tau(point["tau"]), "swe")
  method = METHODS.get(point.get("method"))
  ignored = method.ignores if method else ()
  return {axis: v for axis, v in point.items() if axis not in ignored}


def label(axis: str, value: Any) -> str:
  """Returns a value as it stands in the name of a run."""
  if axis == "tau":
    return f"tau{100 * parse_tau(value):g}"
  if axis == "units" and isinstance(value, int):
    return f"units{value}"
  short = {
    "learning_rate": "lr",
    "width": "width",
    "steps": "steps",
    "seed": "seed",
  }.get(axis, "")
  return f"{short}{value:g}" if isinstance(value, (int, float)) else str(value)
