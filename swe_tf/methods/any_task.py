"""Applies a method to any experiment of stock Model Garden.

A stock experiment has no `task.sharing`, so gin describes it (`gin/vit.gin`):

    SharedWeightsTrainer.method = @share_blocks
    find_repeated_blocks.finder = @layers_by_name
    layers_by_name.pattern = 'transformer_encoder_block(_[0-9]+)?'
    sharing.untie_fraction = 0.1

The config of the experiment stays as it is: the method is not in `params.yaml`
but in the `operative_config.*.gin` beside it.
"""

import copy
import dataclasses
import re

import gin
import tf_keras

from swe_tf import errors
from swe_tf import fields
from swe_tf.methods import bindings
from swe_tf.methods import choose
from swe_tf.methods import config as config_lib
from swe_tf.methods import recipes
from swe_tf.sharing import wrapper
from swe_tf.training import phases


@gin.configurable
def layers_by_name(
  model: tf_keras.Model, pattern: str
) -> list[tf_keras.layers.Layer]:
  """Returns the layers of a model by name, in the order of their numbers.

  Args:
    model: The model; layers inside layers are found too.
    pattern: A regular expression for the whole name of a layer. Keras names
      layers `block`, `block_1`, `block_2`, ...

  Raises:
    UsageError: If no layer has such a name, or two have the same one.
  """
  every = [
    layer
    for layer in model.submodules
    if isinstance(layer, tf_keras.layers.Layer)
  ]
  try:
    found = [layer for layer in every if re.fullmatch(pattern, layer.name)]
  except re.error as error:
    raise errors.UsageError(
      f"layers_by_name.pattern ({pattern!r}) is not a regular expression: "
      f"{error}."
    ) from error
  if not found:
    numbered = [n.name for n in every if re.search(r"_1$", n.name)]
    raise errors.UsageError(
      f"layers_by_name.pattern ({pattern!r}) matches no layer; layers that "
      f"occur more than once are {', '.join(sorted(set(numbered)))}."
    )
  # The first layer has no number: Keras leaves it out.
  found.sort(key=lambda layer: [int(n) for n in re.findall(r"\d+", layer.name)])
  for one, other in zip(found, found[1:]):
    if one.name == other.name:
      raise errors.UsageError(
        f"layers_by_name.pattern ({pattern!r}) matches two layers named "
        f"{one.name!r}; bind find_repeated_blocks.finder to a function of the "
        "model that returns the blocks."
      )
  return found


@gin.configurable
def share_blocks(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a stock task by the method that gin describes.

  Raises:
    UsageError: If the task cannot be trained with gin's `sharing` and `growth`.
  """
  config = copy.deepcopy(ingredients.config)
  if (
    config.runtime.mixed_precision_dtype == "float16"
    and config.trainer.optimizer_config.ema is not None
  ):
    raise errors.UsageError(
      "runtime.mixed_precision_dtype is float16 and "
      "trainer.optimizer_config.ema is set: a stock task cannot scale its loss "
      "under EMA. Use bfloat16 or float32, or unset one of them."
    )
  config.task.override(
    {
      "sharing": config_lib.SharingConfig(),
      "growth": config_lib.GrowthConfig(),
    },
    is_strict=False,
  )
  bindings.set_fields(config.task)
  recipes.apply(config.task.sharing, None)
  bindings.record(config.task.sharing)
  fields.check(config, config_lib.LIMITS)
  choose.check(config)
  return choose.apply(
    dataclasses.replace(
      ingredients,
      config=config,
      optimizer=wrapper.bare_optimizer(ingredients.optimizer),
    )
  )
