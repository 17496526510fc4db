"""The two reparameterizations against the update that section 2 derives."""

import math
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

import swe_tf
from swe_tf.methods import reparameterize as reparameterization
from swe_tf.methods import stem_branch
from swe_tf.sharing import slots
from tests.sharing import toy

_ETA = 0.01


def _train(method, make_inner, unit_size=1, num_replicas=1):
  """Trains the toy stack; returns the model and the optimizer."""
  strategy = toy.strategy_of(num_replicas)
  with strategy.scope():
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
    optimizer = method(make_inner(), plan)
    optimizer.begin()

  def step(x, y):
    grads = toy.gradients_of(model, x, y)
    optimizer.apply_gradients(list(zip(grads, model.trainable_variables)))

  toy.run_steps(strategy, step, toy.batches())
  return model, optimizer


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


def _difference(model, weights):
  return max(
    np.max(np.abs(v.numpy() - w))
    for v, w in zip(model.trainable_variables, weights)
  )


class StemBranchTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    make_inner=(
      lambda: tf_keras.optimizers.legacy.SGD(_ETA),
      lambda: tf_keras.optimizers.SGD(_ETA),
    ),
    unit_size=(1, 2),
    num_replicas=(1, 2),
  )
  def test_sgd_moves_as_section_2_derives(
    self, make_inner, unit_size, num_replicas
  ):
    model, _ = _train(
      stem_branch.StemBranchOptimizer, make_inner, unit_size, num_replicas
    )
    expected = _by_hand(unit_size, num_replicas)
    self.assertLessEqual(_difference(model, expected), 1e-6)

  def test_without_the_scale_it_moves_otherwise(self):
    with mock.patch.object(stem_branch, "stem_scale", lambda num_units: 1.0):
      model, _ = _train(
        stem_branch.StemBranchOptimizer,
        lambda: tf_keras.optimizers.legacy.SGD(_ETA),
      )
    self.assertGreater(_difference(model, _by_hand(1, 1)), 1e-3)

  @parameterized.parameters(1, 2)
  def test_mixing_gradients_is_the_same_at_twice_the_rate(self, num_replicas):
    """Of tied variables only: the others move twice as far."""

    def inner():
      sgd = tf_keras.optimizers.legacy.SGD(2 * _ETA)
      apply = sgd.apply_gradients

      def half_the_untied(grads_and_vars, **kwargs):
        return apply(
          [(g if "block" in v.name else 0.5 * g, v) for g, v in grads_and_vars],
          **kwargs,
        )

      sgd.apply_gradients = half_the_untied
      return sgd

    model, _ = _train(
      reparameterization.ReparameterizedOptimizer,
      inner,
      num_replicas=num_replicas,
    )
    expected = _by_hand(1, num_replicas)
    self.assertLessEqual(_difference(model, expected), 1e-6)

  @parameterized.product(
    inner=("adamw_clip", "lamb_global_clipnorm"), num_replicas=(1, 2)
  )
  def test_weights_are_stem_and_branch(self, inner, num_replicas):
    model, optimizer = _train(
      stem_branch.StemBranchOptimizer,
      toy.OPTIMIZERS[inner],
      num_replicas=num_replicas,
    )
    for stem, branches, tie in zip(
      optimizer.stems, optimizer.branches, optimizer.plan.ties
    ):
      self.assertNotAllEqual(stem, tf.zeros_like(stem))
      for branch, variable in zip(branches, tie):
        self.assertIn(variable.name.split(":")[0], branch.name)
        self.assertAllClose(
          variable,
          stem / math.sqrt(toy.NUM_LAYERS) + branch,
          atol=1e-7,
        )
        for own, has in ((branch, True), (stem, True), (variable, False)):
          self.assertEqual(slots.has_slots(optimizer.inner_optimizer, own), has)
    for variable in (*model.first.variables, *model.last.variables):
      self.assertTrue(slots.has_slots(optimizer.inner_optimizer, variable))

  def test_weight_decay_by_name(self):
    _, optimizer = _train(
      stem_branch.StemBranchOptimizer, toy.OPTIMIZERS["adamw_clip"]
    )
    decays = optimizer.inner_optimizer._do_use_weight_decay  # pylint: disable=protected-access
    for row in (optimizer.stems, *optimizer.branches):
      for v in row:
        self.assertEqual(decays(v.name), "kernel" in v.name)

  def test_begins_from_the_weights_of_the_model(self):
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    optimizer = stem_branch.StemBranchOptimizer(
      tf_keras.optimizers.legacy.SGD(_ETA), plan
    )
    model.blocks[1].kernel.assign(tf.ones_like(model.blocks[1].kernel))
    optimizer.begin()
    self.assertAllEqual(optimizer.branches[0][1], model.blocks[1].kernel)


if __name__ == "__main__":
  tf.test.main()
