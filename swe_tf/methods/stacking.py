"""Progressive stacking: train few layers, copy them on top, train on.

What: Gong et al., Efficient Training of BERT by Progressively Stacking (ICML
2019): a quarter of the layers at first, then half, then all. Each time, the
trained blocks are copied on top of themselves, with their weights and slots. A
shallow phase trains a view of the model (`views.py`).

Use: `task.growth.method=stacking`, `task.sharing.mode=none`; `fractions` of
`task.growth`.

Cost: fewer FLOPs than the baseline, two more compiles: `swe doctor cost`.

Where it does not help: BERT only, legacy optimizers only, no EMA; the number of
layers must be divisible by 4.
"""

from collections.abc import Sequence
import dataclasses

import tf_keras

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import growth
from swe_tf.methods import views
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import slots
from swe_tf.training import phases


def _shallow(size: sizes.Size, times: int) -> sizes.Size:
  return dataclasses.replace(size, num_layers=size.num_layers // 2**times)


def _check_size(params: registry.Params) -> None:
  num_layers = params.get("num_layers") or 0
  if num_layers % 4:
    raise errors.UsageError(
      f"num_layers ({num_layers}) must be divisible by 4 for 'stacking': it "
      "trains a quarter of them first."
    )


_GROWING = growth.Growing(
  name="stacking",
  shrink=_shallow,
  fractions=(0.125, 0.3),  # Gong et al. 2019: 50k and 120k of 400k steps.
  check_size=_check_size,
)


def stack_blocks(
  blocks: Sequence[tf_keras.layers.Layer], optimizer, depth: int
) -> None:
  """Copies the first `depth` blocks to the next `depth`. Runs eagerly.

  Args:
    blocks: The blocks of the whole model.
    optimizer: The legacy optimizer that trains them.
    depth: How many have been trained so far.
  """
  pairs = [
    pair
    for below, above in zip(blocks[:depth], blocks[depth : 2 * depth])
    for pair in zip(below.trainable_variables, above.trainable_variables)
  ]
  for below, above in pairs:
    above.assign(below.read_value())
  slots.copy_slots(optimizer, pairs)


class StackingPhases(growth.GrowthPhases):
  """A quarter of the layers, then half of them, then all."""

  def __init__(self, model, optimizer, steps, build_encoder):
    """Initializes the phases.

    Args:
      model: The model of the task: a `BertPretrainerV2`.
      optimizer: See the base class.
      steps: See the base class.
      build_encoder: Builds an encoder of the task with a given number of
        layers.
    """
    self._blocks = model.encoder_network.transformer_layers
    depth = len(self._blocks)
    super().__init__(optimizer, steps, sizes=(depth // 4, depth // 2, depth))
    self._views = [
      views.of_blocks(model, range(size), build_encoder)
      for size in self._sizes[:-1]
    ]

  @property
  def name(self) -> str:
    return f"{self.size} of {len(self._blocks)} layers"

  @property
  def model(self) -> tf_keras.Model | None:
    shallow = self.stage < len(self._views)
    return self._views[self.stage] if shallow else None

  def grow(self, stage: int) -> str:
    """See base class."""
    stack_blocks(self._blocks, self._optimizer, self._sizes[stage])
    return f"stacked {self._sizes[stage]} to {self._sizes[stage + 1]} layers"


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  stacking = StackingPhases(
    ingredients.model,
    ingredients.optimizer,
    _GROWING.steps(catalog.resolve(ingredients.config)),
    views.encoder_builder(ingredients.task),
  )
  return phases.Training(ingredients.optimizer, stacking)


catalog.register(_GROWING.method(build))
