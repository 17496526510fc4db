"""Recipes: sets of fields of `task.sharing` that were tried and measured.

`task.sharing.recipe=NAME` sets them. docs/map.md has the measurements; none is
the default, which is Algorithm 1 as printed.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.methods import config as config_lib

RECIPES: dict[str, Mapping[str, Any]] = {
  # One layer for 30% of the steps, untied into the whole stack.
  "few_loops": {"untie_fraction": 0.3, "loops": [{"loops": 1}]},
}


def apply(sharing: config_lib.SharingConfig) -> None:
  """Sets the fields of `sharing.recipe`; changes `sharing` in place.

  Raises:
    UsageError: If there is no such recipe, or a field was set to another value.
  """
  if not sharing.recipe:
    return
  if sharing.recipe not in RECIPES:
    raise errors.UsageError(
      f"task.sharing.recipe ({sharing.recipe!r}) must be one of "
      f"{', '.join(RECIPES)}."
    )
  fields = RECIPES[sharing.recipe]
  made = dataclasses.replace(config_lib.SharingConfig())
  made.override(fields)
  plain = config_lib.SharingConfig().as_dict()
  for name, value in made.as_dict().items():
    if name not in fields:
      continue
    now = sharing.as_dict()[name]
    if now not in (plain[name], value):
      raise errors.UsageError(
        f"task.sharing.recipe={sharing.recipe} sets {name} to {value}, but it "
        f"was set to {now}; leave the one or the other out."
      )
  sharing.override(fields)
