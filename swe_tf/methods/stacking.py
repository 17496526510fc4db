"""Progressive stacking: train few layers, copy them on top, train on.

What: Gong et al., Efficient Training of BERT by Progressively Stacking (ICML
2019): a quarter of the layers at first, then half, then all. Each time the
trained blocks are copied on top of themselves, weights and slots. There is one
model. A shallow phase trains a view of it, which has the first blocks of the
encoder and all the rest as they are; the other blocks get neither gradients nor
weight decay nor slots until the stack has reached them.

Use: `task.growth.method=stacking`, `task.sharing.mode=none`; `fractions` of
`task.growth`.

Cost: fewer FLOPs than the baseline, two more compiles: `swe doctor cost`.

Where it does not help: BERT only, legacy optimizers only, no EMA; the number of
layers must be divisible by 4.
"""

from collections.abc import Sequence

import tf_keras

from official.nlp.modeling import models
from swe_tf.methods import catalog
from swe_tf.methods import choose
from swe_tf.methods import growth
from swe_tf.modeling import registry
from swe_tf.sharing import slots
from swe_tf.training import phases


def take_blocks(encoder, shallow, num_layers: int) -> None:
  """Makes `shallow` a view of the first `num_layers` blocks of `encoder`.

  Args:
    encoder: A built `BertEncoderV2`.
    shallow: An encoder of the same kind with `num_layers` blocks, not built. It
      gets all the layers of `encoder` in place of its own.
    num_layers: The number of blocks.
  """
  for name, value in list(vars(encoder).items()):
    if isinstance(value, tf_keras.layers.Layer):
      setattr(shallow, name, value)
    elif value is encoder.transformer_layers:
      setattr(shallow, name, list(value[:num_layers]))


def stack_blocks(
  blocks: Sequence[tf_keras.layers.Layer], optimizer, depth: int
) -> None:
  """Copies the first `depth` blocks to the next. Runs eagerly.

  Args:
    blocks: The blocks of the whole model.
    optimizer: The legacy optimizer that trains them.
    depth: How many are trained so far.
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
    self._views = []
    for size in self._sizes[:-1]:
      shallow = build_encoder(size)
      take_blocks(model.encoder_network, shallow, size)
      self._views.append(
        models.BertPretrainerV2(
          encoder_network=shallow,
          customized_masked_lm=model.masked_lm,
          classification_heads=model.classification_heads,
        )
      )

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
  task = ingredients.task
  model = task.task_config.model
  encoder = registry.require_encoder({"model": model.as_dict()})

  def build_encoder(num_layers: int):
    shallow = encoder.overrides(num_layers=num_layers)["model"]
    return task._build_encoder(model.replace(**shallow).encoder)  # pylint: disable=protected-access

  stacking = StackingPhases(
    ingredients.model,
    ingredients.optimizer,
    catalog.growth_steps(choose.choice_of(ingredients.config)),
    build_encoder,
  )
  return phases.Training(ingredients.optimizer, stacking)
