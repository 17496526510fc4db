"""The reparameterization against the update that section 2 derives."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

import swe_tf
from swe_tf.methods import reparameterize
from tests.sharing import toy

_ETA = 0.01


def _by_hand(unit_size, num_replicas):
  """Returns the weights after w_i <- w_i - eta (mean_j g_j + g_i)."""
  with toy.strategy_of(num_replicas).scope():
    start = toy.make_stack().get_weights()  # The strategy has its own seeds.
  model = toy.make_stack()
  model.set_weights(start)
  plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
  for x, y in toy.batches():
    # The replicas' gradients are summed.
    parts = [
      toy.gradients_of(model, x[r::num_replicas], y[r::num_replicas])
      for r in range(num_replicas)
    ]
    total = {
      v.name: np.sum([part[i] for part in parts], axis=0)
      for i, v in enumerate(model.trainable_variables)
    }
    step = dict(total)
    for tie in plan.ties:
      mean = np.mean([total[v.name] for v in tie], axis=0)
      step.update({v.name: mean + total[v.name] for v in tie})
    for v in model.trainable_variables:
      v.assign_sub(_ETA * step[v.name])
  return [v.numpy() for v in model.trainable_variables]


class ReparameterizeTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(num_replicas=(1, 2), unit_size=(1, 2))
  def test_sgd_at_twice_the_rate_moves_as_section_2_derives(
    self, num_replicas, unit_size
  ):
    """Of tied variables only: the others move twice as far."""
    inner = tf_keras.optimizers.legacy.SGD(2 * _ETA)
    apply = inner.apply_gradients

    def half_the_untied(grads_and_vars, **kwargs):
      return apply(
        [(g if "block" in v.name else 0.5 * g, v) for g, v in grads_and_vars],
        **kwargs,
      )

    inner.apply_gradients = half_the_untied
    strategy = toy.strategy_of(num_replicas)
    with strategy.scope():
      model = toy.make_stack()
      plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
      optimizer = reparameterize.ReparameterizedOptimizer(inner, plan)
    step = toy.make_step(model, optimizer)
    toy.run_steps(strategy, step, toy.batches())
    expected = _by_hand(unit_size, num_replicas)
    for variable, weight in zip(model.trainable_variables, expected):
      self.assertAllClose(variable, weight, rtol=0, atol=1e-6)
