"""The sharing plan of a task's model: its repeated blocks, in units."""

from collections.abc import Callable, Sequence
from typing import Any

import gin
import tf_keras

from swe_tf import errors
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry
from swe_tf.sharing import plan as plan_lib


@gin.configurable
def find_repeated_blocks(
  model: tf_keras.Model, finder: Callable[..., Any] | None = None
) -> Sequence[tf_keras.layers.Layer]:
  """Returns the repeated blocks of a model, first to last; maybe none.

  Args:
    model: The model that the task built.
    finder: A function of the model, for an encoder that keeps its blocks
      elsewhere. Bind it in gin: `find_repeated_blocks.finder = @my_finder`.
  """
  return list(finder(model) if finder else registry.blocks_of(model))


@gin.configurable
def make_sharing_plan(
  blocks: Sequence[tf_keras.layers.Layer],
  config: config_lib.SharingConfig,
  unit_size: int | None = None,
) -> plan_lib.SharingPlan:
  """Makes the plan of a model's repeated blocks.

  Args:
    blocks: The repeated blocks, first to last.
    config: `task.sharing`.
    unit_size: Wins over `config.unit_size`; for gin:
      `make_sharing_plan.unit_size = 4`.
  """
  return plan_lib.SharingPlan.from_layers(
    blocks,
    unit_size or config.unit_size,
    share=config.share,
    own_layers=config.own_layers,
  )


def plan_of(
  model: tf_keras.Model, config: config_lib.SharingConfig
) -> plan_lib.SharingPlan:
  """Returns the plan of a model; raises `UsageError` if nothing repeats."""
  blocks = find_repeated_blocks(model)
  if blocks:
    return make_sharing_plan(blocks, config)
  encoder = getattr(model, "encoder_network", model)
  raise errors.UsageError(
    f"task.sharing.mode is {config.mode!r}, but {type(encoder).__name__} has "
    "no `transformer_layers` to share. Bind `find_repeated_blocks.finder` in "
    "gin to a function that returns them, or set task.sharing.mode=none."
  )
