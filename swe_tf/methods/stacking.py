"""Progressive stacking: train few layers, copy them on top, train on.

Gong et al. (ICML 2019): a quarter of the layers at first, then half, then all.
A shallow phase trains a view of the model (`plans.view_of`). The card:
docs/cards/stacking.md.
"""

import tf_keras

from swe_tf.methods import growth
from swe_tf.methods import plans
from swe_tf.sharing import slots
from swe_tf.training import phases


class StackingPhases(growth.GrowthPhases):
  """A quarter of the layers, then half of them, then all."""

  def __init__(self, model, optimizer, steps, build_encoder):
    self._blocks = model.encoder_network.transformer_layers
    depth = len(self._blocks)
    super().__init__(optimizer, steps, sizes=(depth // 4, depth // 2, depth))
    self._views = [
      plans.view_of(model, range(size), build_encoder)
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
    depth = self._sizes[stage]
    pairs = [
      pair
      for lower, upper in zip(self._blocks, self._blocks[depth : 2 * depth])
      for pair in zip(lower.trainable_variables, upper.trainable_variables)
    ]
    for lower, upper in pairs:
      upper.assign(lower.read_value())
    slots.copy_slots(self._optimizer, pairs)
    return f"stacked {depth} to {self._sizes[stage + 1]} layers"


def build(ingredients: phases.Ingredients, steps: list[int]) -> StackingPhases:
  build_encoder = plans.encoder_builder(ingredients.task)
  return StackingPhases(
    ingredients.model, ingredients.optimizer, steps, build_encoder
  )


growth.register(
  "stacking",
  build,
  halves=("num_layers",),
  fractions=(0.125, 0.3),  # Gong et al. 2019: 50k and 120k of 400k steps.
)
