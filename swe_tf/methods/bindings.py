"""Writes gin's bindings of the method into the config.

Any field of `task.sharing` and `task.growth` can be bound, so a method can be a
gin file on the stock driver's command line (`gin/`):

    sharing.unit_size = 2
    growth.method = 'stacking'

A rule or a plan that is bound as code is recorded too. Otherwise a report would
label a run by its config and not by what was trained.
"""

from typing import Any

import gin

from swe_tf import fields
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib

_TRAINER, _RULE = "SharedWeightsTrainer", "untie_rule"
_PLAN, _BLOCKS = "make_sharing_plan", "find_repeated_blocks"


@gin.configurable("sharing", module="swe_tf.methods")
def _sharing(**bound):
  """Stands for `task.sharing` in gin; never called."""
  del bound


@gin.configurable("growth", module="swe_tf.methods")
def _growth(**bound):
  """Stands for `task.growth` in gin; never called."""
  del bound


def set_fields(task: Any) -> None:
  """Sets the fields of `task.sharing` and `task.growth` that gin binds.

  Raises:
    UsageError: If there is no such field, or its type is another one.
  """
  for name in ("sharing", "growth"):
    bound = _bound(name)
    if bound:
      config = getattr(task, name)
      config.override(fields.conform(config, bound, f"task.{name}"))


def record(sharing: config_lib.SharingConfig) -> None:
  """Records rules and plans that gin binds in `sharing`, in place."""
  unit_size = _bound(_PLAN).get("unit_size")
  if unit_size is not None:
    sharing.unit_size = unit_size
  unsaid = _lines(_BLOCKS)
  rule = _bound(_TRAINER).get(_RULE)
  if rule is not None:
    name = getattr(rule, "selector", str(rule)).split(".")[-1]
    if name == "UntieAtStep":
      sharing.rule = catalog.FIXED
      # If it is unbound, the rule itself raises.
      bound = _bound(name)
      sharing.untie_step = bound.get("untie_step", sharing.untie_step)
    else:
      sharing.rule = name
      catalog.register_rule(catalog.Rule(name=name, make=_not_from_config))
      unsaid += _lines(name)
  sharing.bindings = unsaid


def _bound(configurable: str) -> dict[str, Any]:
  try:
    return gin.get_bindings(configurable, resolve_references=False)
  except ValueError:  # Its module is not imported.
    return {}


def _lines(configurable: str) -> list[str]:
  return [
    f"{configurable}.{name} = {value!r}"
    for name, value in sorted(_bound(configurable).items())
  ]


def _not_from_config(resolved: catalog.Resolved) -> None:
  """Stands for a rule that the trainer gets from gin; never consulted."""
  del resolved
