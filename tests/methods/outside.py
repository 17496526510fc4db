"""A baseline and an untie rule of somebody else: one file, made known by

swe COMMAND --plugins=tests.methods.outside
"""

from swe_tf.methods import catalog


def build(ingredients):
  """Trains with half of every gradient."""
  import tensorflow as tf

  from swe_tf.sharing import wrapper
  from swe_tf.training import phases

  class Damped(wrapper.WrappedOptimizer):
    def transform(self, grads_and_vars):
      return [
        (None if g is None else 0.5 * tf.convert_to_tensor(g), v)
        for g, v in grads_and_vars
      ]

  return phases.Training(Damped(ingredients.optimizer), phases.OnePhase(None))


def make_halfway(sharing, train_steps):
  """Unties in the middle of the run, whatever the config says of tau."""
  from swe_tf.sharing import schedule

  del sharing
  return schedule.UntieAtStep(train_steps // 2)


catalog.register(
  catalog.Method(
    name="damped",
    task={"sharing": {"mode": "damped"}},
    build=build,
    ignores=frozenset({"tau", "units"}),
  )
)
catalog.register_rule(catalog.Rule(name="halfway", make=make_halfway))
