"""Methods in gin files, for our tasks and for any of stock Model Garden.

Any field of `task.sharing` and `task.growth` can be bound, so a method can be a
gin file on the stock driver's command line (`gin/`):

    sharing.unit_size = 2
    growth.method = 'stacking'

A stock experiment has no `task.sharing`, so gin describes all of it
(`gin/vit.gin`); its method is then not in `params.yaml` but in the
`operative_config.*.gin` beside it:

    SharedWeightsTrainer.method = @share_blocks
    find_repeated_blocks.finder = @layers_by_name
    layers_by_name.pattern = 'transformer_encoder_block(_[0-9]+)?'
"""

import copy
import dataclasses
import re
from typing import Any

import gin
import tf_keras

from swe_tf import errors
from swe_tf import fields
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.sharing import wrapper
from swe_tf.training import phases


@gin.configurable("sharing", module="swe_tf.methods")
def _sharing(**bound):
  """Stands for `task.sharing` in gin; never called."""


@gin.configurable("growth", module="swe_tf.methods")
def _growth(**bound):
  """Stands for `task.growth` in gin; never called."""


def refuse_conflicts(overrides: Any) -> None:
  """Raises if overrides of an experiment set what gin binds to another value.

  `complete` comes last, so gin would win.
  """
  task = overrides.get("task")
  for name in ("sharing", "growth"):
    table = task.get(name) if isinstance(task, dict) else None
    if not isinstance(table, dict):
      continue
    for field, bound in _bound(name).items():
      if field in table and table[field] != bound:
        raise errors.UsageError(
          f"task.{name}.{field} is set to {table[field]!r}, but gin binds "
          f"{name}.{field} = {bound!r}; set only one of them."
        )


def complete(task: Any, num_layers: int | None) -> None:
  """Sets what gin and the recipe say about the method, in place.

  A rule that gin binds as code is recorded too: otherwise a report would label
  a run by its config and not by what was trained.
  """
  for name in ("sharing", "growth"):
    bound = _bound(name)
    if bound:
      config = getattr(task, name)
      config.override(fields.conform(config, bound, f"task.{name}"))
  sharing = task.sharing
  config_lib.apply_recipe(sharing, num_layers)
  # What no field expresses is kept as lines of gin.
  unsaid = ["find_repeated_blocks"]
  rule = _bound("SharedWeightsTrainer").get("untie_rule")
  if rule is not None and not getattr(rule, "evaluate", False):
    raise errors.UsageError(
      f"gin: SharedWeightsTrainer.untie_rule ({rule}) must be a rule, such as "
      "@UntieAtStep(), with parentheses."
    )
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
      unsaid.append(name)
  sharing.bindings = [
    f"{configurable}.{name} = {value!r}"
    for configurable in unsaid
    for name, value in sorted(_bound(configurable).items())
  ]


def _bound(configurable: str) -> dict[str, Any]:
  try:
    return gin.get_bindings(configurable, resolve_references=False)
  except ValueError:  # Its module is not imported.
    return {}


def _not_from_config(resolved: catalog.Resolved) -> None:
  """Stands for a rule that the trainer gets from gin; never consulted."""


@gin.configurable
def layers_by_name(
  model: tf_keras.Model, pattern: str
) -> list[tf_keras.layers.Layer]:
  """Returns the layers of a model by name, in the order of their numbers.

  The pattern is a regular expression for the whole name of a layer, also inside
  of other layers. Keras names layers `block`, `block_1`, `block_2`, ...
  """
  place = f"layers_by_name.pattern ({pattern!r})"
  kind = tf_keras.layers.Layer
  every = [layer for layer in model.submodules if isinstance(layer, kind)]
  try:
    found = [layer for layer in every if re.fullmatch(pattern, layer.name)]
  except re.error as error:
    raise errors.UsageError(
      f"{place} is not a regular expression: {error}."
    ) from error
  if not found:
    numbered = {layer.name for layer in every if layer.name.endswith("_1")}
    raise errors.UsageError(
      f"{place} matches no layer; layers that occur more than once are "
      f"{', '.join(sorted(numbered))}."
    )
  # The first layer has no number: Keras leaves it out.
  found.sort(key=lambda layer: [int(n) for n in re.findall(r"\d+", layer.name)])
  if len({layer.name for layer in found}) < len(found):
    raise errors.UsageError(
      f"{place} matches two layers with one name; bind "
      "find_repeated_blocks.finder to a function of the model instead."
    )
  return found


def describe(config: Any) -> Any:
  """Returns a stock experiment with the `task.sharing` that gin describes."""
  config = copy.deepcopy(config)
  if (
    config.runtime.mixed_precision_dtype == "float16"
    and config.trainer.optimizer_config.ema is not None
  ):
    raise errors.UsageError(
      "runtime.mixed_precision_dtype is float16 and trainer.optimizer_config."
      "ema is set: a stock task cannot scale its loss then; unset one of them."
    )
  sharing, growth = config_lib.SharingConfig(), config_lib.GrowthConfig()
  config.task.override({"sharing": sharing, "growth": growth}, is_strict=False)
  complete(config.task, catalog.resolve(config).num_layers)
  fields.check(config, config_lib.LIMITS)
  catalog.check(config)
  return config


def is_shared_by_gin() -> bool:
  """Whether gin has a stock task share, as `gin/stock.gin` does."""
  method = _bound("SharedWeightsTrainer").get("method")
  return getattr(method, "selector", "").endswith("share_blocks")


@gin.configurable
def share_blocks(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a stock task by the method that gin describes."""
  config = describe(ingredients.config)
  bare = wrapper.bare_optimizer(ingredients.optimizer)
  training = catalog.apply(
    dataclasses.replace(ingredients, config=config, optimizer=bare)
  )
  task = config.task.as_dict()
  described = {name: task[name] for name in ("sharing", "growth")}
  return dataclasses.replace(training, described=described)
