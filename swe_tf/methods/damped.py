"""Damped: a baseline that trains with half of every gradient.

What: the stock optimizer, given g / 2 in place of g.

Use: `task.sharing.mode=damped`.

Cost: none; the step is the baseline's.

Where it does not help: Adam and the like are invariant to the scale of
gradients, so that only SGD trains otherwise.
"""

import tensorflow as tf

from swe_tf.methods import catalog
from swe_tf.sharing import wrapper
from swe_tf.training import phases


class DampedOptimizer(wrapper.WrappedOptimizer):
  """Gives the inner optimizer half of every gradient."""

  def transform(self, grads_and_vars):
    return [
      (None if g is None else 0.5 * tf.convert_to_tensor(g), v)
      for g, v in grads_and_vars
    ]


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  optimizer = DampedOptimizer(ingredients.optimizer)
  return phases.Training(optimizer, phases.OnePhase(None))


catalog.register(
  catalog.Method(
    name="damped",
    mode="damped",
    build=build,
    ignores=frozenset({"tau", "units"}),
  )
)
