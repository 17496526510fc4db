"""Which variables tie, when they untie, and `model.fit` across tau."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

import swe_tf
from swe_tf import errors
from swe_tf.sharing import untie_step as untie_step_lib
from tests.sharing import toy


def _dense(units=3, name=None, use_bias=True):
  layer = tf_keras.layers.Dense(units, name=name, use_bias=use_bias)
  layer.build([None, 3])
  return layer


class PlanTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters((1, "1x6"), (2, "2x3"), (3, "3x2"), (6, "6x1"))
  def test_layers_share_iff_equal_modulo_the_unit_size(self, unit_size, text):
    layers = [_dense() for _ in range(6)]
    plan = swe_tf.SharingPlan.from_layers(layers, unit_size)
    self.assertEqual(str(plan), text)
    self.assertEqual(plan.unit_size * plan.num_units, 6)
    tied_with = {}
    for tie in plan.ties:
      for v in tie:
        tied_with[id(v)] = tie
    for i, a in enumerate(layers):
      for j, b in enumerate(layers):
        self.assertEqual(
          tied_with[id(a.kernel)] is tied_with[id(b.kernel)],
          i % unit_size == j % unit_size,
        )
    self.assertIs(plan.ties[0][0], layers[0].kernel)
    self.assertEqual(plan.parameters_per_unit, unit_size * 12)

  def test_tie_weights_copies_the_stem(self):
    layers = [_dense() for _ in range(4)]
    swe_tf.SharingPlan.from_layers(layers, 2).tie_weights()
    self.assertAllEqual(layers[2].kernel, layers[0].kernel)
    self.assertAllEqual(layers[3].kernel, layers[1].kernel)
    self.assertNotAllEqual(layers[1].kernel, layers[0].kernel)

  def test_bad_input_is_named(self):
    import keras  # Keras 3.

    make = swe_tf.SharingPlan.from_layers
    with self.assertRaisesRegex(
      errors.UsageError, r"unit_size \(4\) .* \(6\).*1, 2, 3, 6"
    ):
      make([_dense() for _ in range(6)], 4)
    with self.assertRaisesRegex(errors.UsageError, "must be an integer"):
      make([_dense()], 1.0)
    with self.assertRaisesRegex(errors.UsageError, "empty"):
      make([])
    with self.assertRaisesRegex(errors.UsageError, "'raw' has no trainable"):
      make([tf_keras.layers.Dense(3, name="raw")])
    with self.assertRaisesRegex(
      errors.UsageError,
      r"'a' and 'b'.*variable 0 is kernel:0 .*\(3, 3\).*but kernel:0 .*3, 5",
    ):
      make([_dense(3, "a"), _dense(5, "b")])
    with self.assertRaisesRegex(errors.UsageError, "only one.*bias:0"):
      make([_dense(3, "a"), _dense(3, "b", use_bias=False)])
    layer = _dense()
    with self.assertRaisesRegex(errors.UsageError, "more than once"):
      make([layer, layer])
    with self.assertRaisesRegex(TypeError, "Keras 3"):
      make([keras.layers.Dense(3)])


class SplitTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    ((0, 0, 0, 0), "1x4"),
    ((0, 1, 0, 1), "2x2"),
    ((0, 1, 2, 3), "4x1"),
    ((0, 0, 0, 3), "1x4 in groups 0-2, 3"),
    ((0, 1, 1, 0), "1x4 in groups 0+3, 1-2"),
    ((0, 0, 2, 0), "1x4 in groups 0+1+3, 2"),
  )
  def test_ties_are_those_of_the_groups(self, groups, text):
    layers = [_dense() for _ in range(4)]
    whole = swe_tf.SharingPlan.from_layers(layers)
    plan = whole.split(groups)
    self.assertEqual(str(plan), text)
    self.assertEqual(plan.whole_ties, whole.ties)
    tied = {frozenset(map(id, tie)) for tie in plan.ties}
    self.assertEqual(
      tied,
      {
        frozenset(
          id(getattr(layers[u], name)) for u in range(4) if groups[u] == first
        )
        for first in set(groups)
        for name in ("kernel", "bias")
      },
    )
    stems = {
      id(getattr(layers[first], name))
      for first in groups
      for name in ("kernel", "bias")
    }
    self.assertEqual(set(map(id, plan.stems)), stems)

  def test_units_of_two_layers(self):
    layers = [_dense() for _ in range(8)]
    plan = swe_tf.SharingPlan.from_layers(layers, 2).split((0, 1, 0, 1))
    self.assertEqual(str(plan), "4x2")
    tied = [tuple(map(id, tie)) for tie in plan.ties]
    self.assertIn((id(layers[1].kernel), id(layers[5].kernel)), tied)

  def test_bad_groups_are_named(self):
    whole = swe_tf.SharingPlan.from_layers([_dense() for _ in range(4)])
    for groups in ((0, 0, 0), (0, 0, 0, 2), (1, 1, 1, 1), (0, 2, 2, 2)):
      with self.assertRaisesRegex(errors.UsageError, "first unit of its gro"):
        whole.split(groups)
    with self.assertRaisesRegex(errors.UsageError, "cannot be tied again"):
      whole.split((0, 0, 2, 2)).split((0, 0, 0, 3))


class ScheduleTest(parameterized.TestCase):
  @parameterized.parameters(
    (dict(), 50),
    (dict(untie_step=7), 7),
    (dict(untie_step=0), 0),
    (dict(untie_fraction=1.0), 500),
    (dict(untie_fraction=0.0), 0),
    (dict(untie_step=500, untie_fraction=0.2), 500),
  )
  def test_step_wins_over_fraction(self, kwargs, tau):
    self.assertEqual(untie_step_lib.resolve_untie_step(500, **kwargs), tau)

  @parameterized.parameters(
    (dict(untie_step=501), r"untie_step \(501\).*500"),
    (dict(untie_step=-1), r"untie_step \(-1\)"),
    (dict(untie_fraction=1.5), r"untie_fraction \(1.5\)"),
    (dict(untie_fraction=None), "Neither"),
  )
  def test_outside_of_the_run(self, kwargs, message):
    with self.assertRaisesRegex(errors.UsageError, message):
      untie_step_lib.resolve_untie_step(500, **kwargs)


class CallbackTest(tf.test.TestCase):
  def test_fit_equals_algorithm_1_across_tau(self):
    model = toy.make_stack()
    inner = toy.OPTIMIZERS["adamw_clip"]()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    optimizer = swe_tf.SharedWeightsOptimizer(inner, plan, untie_step=toy.TAU)
    model.compile(optimizer=optimizer, loss="mse")
    x, y = map(np.concatenate, zip(*toy.batches()))
    model.fit(
      x,
      y,
      batch_size=8,
      shuffle=False,
      verbose=0,
      callbacks=[swe_tf.UntieCallback()],
    )
    self.assertEqual(optimizer.untied_at, toy.TAU)
    oracle = toy.run_algorithm_1(toy.OPTIMIZERS["adamw_clip"], 1, 1)
    ours = toy.state_of(model, inner)
    self.assertLessEqual(toy.max_relative_difference(ours, oracle), 1e-6)

  def test_says_what_it_needs(self):
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    x, y = toy.batches(1)[0]

    def fit(optimizer, **kwargs):
      model.compile(optimizer=optimizer, loss="mse", **kwargs)
      model.fit(x, y, verbose=0, callbacks=[swe_tf.UntieCallback()])

    inner = tf_keras.optimizers.SGD
    with self.assertRaisesRegex(errors.UsageError, "SharedWeightsOptimizer"):
      fit(inner())
    with self.assertRaisesRegex(errors.UsageError, "untie_step"):
      fit(swe_tf.SharedWeightsOptimizer(inner(), plan))
    with self.assertRaisesRegex(errors.UsageError, "steps_per_execution"):
      fit(
        swe_tf.SharedWeightsOptimizer(inner(), plan, untie_step=3),
        steps_per_execution=2,
      )


if __name__ == "__main__":
  tf.test.main()
