"""Other steps for tied variables, against optimizers with another rate.

The slow way is Algorithm 1 with two stock optimizers: one for the variables of
the ties, whose learning rate is set before every update, and one for the rest.
"""

from absl.testing import parameterized
import tensorflow as tf
import tf_keras

from official.modeling.optimization import lamb
from official.modeling.optimization import legacy_adamw
import swe_tf
from swe_tf import errors
from tests.sharing import toy

_WARMUP, _STEPS = 3, 8
_RATE = 0.02
_OPTIMIZERS = {
  "sgd": lambda: tf_keras.optimizers.legacy.SGD(_RATE),
  "adamw": lambda: legacy_adamw.AdamWeightDecay(
    _RATE, epsilon=1e-3, weight_decay_rate=0.01, gradient_clip_norm=0.0
  ),
  "lamb": lambda: lamb.LAMB(_RATE, epsilon=1e-3, weight_decay_rate=0.01),
  "adam": lambda: tf_keras.optimizers.Adam(_RATE, epsilon=1e-3),
}


def _rate_of_tied(step):
  """Returns by what the rate of tied variables is multiplied in an update."""
  if step < toy.TAU:
    return 1.0
  return min(1.0, (step - toy.TAU + 1) / _WARMUP)


def _slow_way(make_optimizer, unit_size, strategy):
  with strategy.scope():
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
    plan.tie_weights()
    for_ties, for_rest = make_optimizer(), make_optimizer()
  tied = {v.name for tie in plan.ties for v in tie}

  def step_fn(is_shared, x, y):
    variables = model.trainable_variables
    grads = dict(
      zip((v.name for v in variables), toy.gradients_of(model, x, y))
    )
    for tie in plan.ties if is_shared else ():
      mean = tf.reduce_mean(tf.stack([grads[v.name] for v in tie]), axis=0)
      grads |= {v.name: mean for v in tie}
    for optimizer, is_its in ((for_ties, True), (for_rest, False)):
      optimizer.apply_gradients(
        [(grads[v.name], v) for v in variables if (v.name in tied) == is_its]
      )

  for step, batch in enumerate(toy.batches(_STEPS)):
    for_ties.learning_rate = _RATE * _rate_of_tied(step)
    toy.run_steps(
      strategy, lambda x, y, s=step: step_fn(s < toy.TAU, x, y), [batch]
    )
  return [v.numpy() for v in model.trainable_variables]


class StepsTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    name=list(_OPTIMIZERS), replicas=[1, 2], unit_size=[1, 2]
  )
  def test_equal_another_learning_rate(self, name, replicas, unit_size):
    strategy = toy.strategy_of(replicas)
    with strategy.scope():
      model = toy.make_stack()
      plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
      plan.tie_weights()
      optimizer = swe_tf.SharedWeightsOptimizer(
        _OPTIMIZERS[name](),
        plan,
        untie_step=toy.TAU,
        untie_warmup_steps=_WARMUP,
      )

    def step_fn(x, y):
      grads = toy.gradients_of(model, x, y)
      optimizer.apply_gradients(zip(grads, model.trainable_variables))

    warm = []
    for step, batch in enumerate(toy.batches(_STEPS)):
      if step == toy.TAU:
        optimizer.untie()
      warm.append(optimizer.is_warming_up)
      toy.run_steps(strategy, step_fn, [batch])
      if step < toy.TAU:
        for stem, *branches in plan.ties:
          for branch in branches:
            self.assertAllEqual(stem, branch)
    self.assertEqual(
      warm, [toy.TAU <= step < toy.TAU + _WARMUP for step in range(_STEPS)]
    )
    self.assertEqual(optimizer.warmup_end, toy.TAU + _WARMUP)
    ours = [v.numpy() for v in model.trainable_variables]
    for a, b in zip(ours, _slow_way(_OPTIMIZERS[name], unit_size, strategy)):
      self.assertAllClose(a, b, rtol=2e-5, atol=2e-6)

  def test_wrong_values_are_refused(self):
    plan = swe_tf.SharingPlan.from_layers(toy.make_stack().blocks)
    with self.assertRaisesRegex(errors.UsageError, "must not be < 0"):
      swe_tf.SharedWeightsOptimizer(
        _OPTIMIZERS["sgd"](), plan, untie_warmup_steps=-1
      )
