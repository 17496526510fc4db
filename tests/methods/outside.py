"""A baseline and an untie rule of somebody else: one file, made known by

swe COMMAND --plugins=tests.methods.outside
"""

import tensorflow as tf

from swe_tf.methods import catalog
from swe_tf.sharing import schedule
from swe_tf.sharing import wrapper
from swe_tf.training import phases


class Damped(wrapper.WrappedOptimizer):
  """Halves every gradient."""

  def transform(self, grads_and_vars):
    return [
      (None if g is None else 0.5 * tf.convert_to_tensor(g), v)
      for g, v in grads_and_vars
    ]


def build(ingredients):
  """Trains with half of every gradient."""
  return phases.Training(Damped(ingredients.optimizer), phases.OnePhase(None))


def make_halfway(resolved):
  """Unties in the middle of the run, whatever the config says of tau."""
  return schedule.UntieAtStep(resolved.train_steps // 2)


catalog.register(
  catalog.Method(
    name="damped",
    mode="damped",
    build=build,
    ignores=frozenset({"tau", "units"}),
  )
)
catalog.register_rule(catalog.Rule(name="halfway", make=make_halfway))
