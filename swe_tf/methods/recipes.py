"""Recipes: sets of fields of `task.sharing` that were tried and measured.

`task.sharing.recipe=NAME` sets them. docs/map.md has the measurements. None of
them is the default, which is Algorithm 1 as printed. Imports no TensorFlow.
"""

from collections.abc import Callable, Mapping
from typing import Any

from swe_tf import errors

Fields = Mapping[str, Any]


def _few_loops(num_layers: int) -> Fields:
  """A unit of a quarter of the layers, applied once, for 30% of the steps.

  Four units are then untied from it. In the paper's terms, these are the
  updates of progressive stacking from a quarter of the layers to all
  (`stacking.py`).
  """
  if num_layers % 4:
    raise errors.UsageError(
      f"task.sharing.recipe=few_loops has 4 units, but the model has "
      f"{num_layers} layers; set unit_size, untie_fraction and loops by hand."
    )
  return {
    "unit_size": num_layers // 4,
    "untie_fraction": 0.3,
    "loops": [{"loops": 1}],
  }


def _one_loop(num_layers: int) -> Fields:
  """One layer, applied once, for half of the steps; then all are untied."""
  del num_layers  # Any number will do.
  return {"unit_size": 1, "untie_fraction": 0.5, "loops": [{"loops": 1}]}


# The fields of each recipe as a function of the number of layers.
RECIPES: dict[str, Callable[[int], Fields]] = {
  "few_loops": _few_loops,
  "one_loop": _one_loop,
}


def apply(sharing: Any, num_layers: int | None) -> None:
  """Sets the fields of `sharing.recipe`, if there is one, in place.

  Args:
    sharing: `task.sharing`, a `SharingConfig`.
    num_layers: The number of layers in the model; None if unknown.

  Raises:
    UsageError: If there is no such recipe, it does not fit the model, or a
      field was set to another value.
  """
  recipe = sharing.recipe
  if not recipe:
    return
  if recipe not in RECIPES:
    raise errors.UsageError(
      f"task.sharing.recipe ({recipe!r}) must be one of {', '.join(RECIPES)}; "
      + errors.nearest(recipe, RECIPES, "see docs/methods.md.")
    )
  if num_layers is None:
    raise errors.UsageError(
      f"task.sharing.recipe={recipe}: the number of layers is not known; "
      "register its family in swe_tf.modeling.registry."
    )
  fields = RECIPES[recipe](num_layers)
  plain, made = type(sharing)(), type(sharing)()
  made.override(fields)
  for name in fields:
    now, value, default = (
      each.as_dict()[name] for each in (sharing, made, plain)
    )
    if now not in (default, value):
      raise errors.UsageError(
        f"task.sharing.recipe={recipe} sets {name} to {value}, but it was set "
        f"to {now}; set only one of them."
      )
  sharing.override(fields)
