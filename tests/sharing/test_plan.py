"""Bad plans and schedules, corner cases of rules, `model.fit` across tau.

Which variables tie, and when they untie, is in `tests/properties`.
"""

import os

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

import swe_tf
from swe_tf import errors
from swe_tf.sharing import schedule
from swe_tf.sharing import untie_step as untie_step_lib
from tests.sharing import toy


def _dense(units=3, name=None, use_bias=True):
  layer = tf_keras.layers.Dense(units, name=name, use_bias=use_bias)
  layer.build([None, 3])
  return layer


class PlanTest(tf.test.TestCase):
  def test_tie_weights_copies_the_stem(self):
    layers = [_dense() for _ in range(4)]
    swe_tf.SharingPlan.from_layers(layers, 2).tie_weights()
    self.assertAllEqual(layers[2].kernel, layers[0].kernel)
    self.assertAllEqual(layers[3].kernel, layers[1].kernel)
    self.assertNotAllEqual(layers[1].kernel, layers[0].kernel)

  def test_units_of_two_layers_are_split(self):
    layers = [_dense() for _ in range(8)]
    plan = swe_tf.SharingPlan.from_layers(layers, 2).split((0, 1, 0, 1))
    self.assertEqual(str(plan), "4x2")
    tied = [tuple(map(id, tie)) for tie in plan.ties]
    self.assertIn((id(layers[1].kernel), id(layers[5].kernel)), tied)

  def test_bad_input_is_named(self):
    import keras  # Keras 3.

    make = swe_tf.SharingPlan.from_layers
    layer, a = _dense(), _dense(3, "a")
    differ = (
      r"'a' and 'b'.*variable 0 is kernel:0 .*\(3, 3\).*but kernel:0 .*3, 5"
    )
    for layers, unit_size, message in (
      ([layer] * 6, 4, r"unit_size \(4\) .* \(6\).*1, 2, 3, 6"),
      ([layer], 1.0, "must be an integer"),
      ([], 1, "empty"),
      ([tf_keras.layers.Dense(3, name="raw")], 1, "'raw' has no trainable"),
      ([a, _dense(5, "b")], 1, differ),
      ([a, _dense(3, "b", use_bias=False)], 1, "only one.*bias:0"),
      ([layer, layer], 1, "more than once"),
    ):
      with self.assertRaisesRegex(errors.UsageError, message):
        make(layers, unit_size)
    with self.assertRaisesRegex(TypeError, "one Keras only"):
      make([_dense(), keras.layers.Dense(3)])
    with self.assertRaisesRegex(TypeError, "list of the repeated .* got Dense"):
      make(_dense())


class ScheduleTest(tf.test.TestCase):
  def test_neither_a_step_nor_a_fraction(self):
    with self.assertRaisesRegex(errors.UsageError, "Neither"):
      untie_step_lib.resolve_untie_step(500, untie_fraction=None)


class CallbackTest(tf.test.TestCase):
  def test_fit_equals_algorithm_1_across_tau(self):
    model = toy.make_stack()
    inner = toy.OPTIMIZERS["adamw_clip"]()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    optimizer = swe_tf.SharedWeightsOptimizer(inner, plan, untie_step=toy.TAU)
    model.compile(optimizer=optimizer, loss="mse")
    x, y = map(np.concatenate, zip(*toy.batches()))
    how = dict(batch_size=8, shuffle=False, verbose=0)
    model.fit(x[:8], y[:8], callbacks=[swe_tf.UntieCallback()], **how)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    path = checkpoint.write(os.path.join(self.get_temp_dir(), "ckpt"))
    oracle = toy.run_algorithm_1(toy.OPTIMIZERS["adamw_clip"], 1, 1)
    for _ in range(2):  # An earlier state shares again.
      checkpoint.read(path)
      self.assertEqual(optimizer.phase, "shared")
      model.fit(x[8:], y[8:], callbacks=[swe_tf.UntieCallback()], **how)
      self.assertEqual(optimizer.untied_at, toy.TAU)
      ours = toy.state_of(model, inner)
      self.assertLessEqual(toy.max_relative_difference(ours, oracle), 1e-6)

  def test_says_what_it_needs(self):
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    x, y = toy.batches(1)[0]

    def fit(optimizer, **kwargs):
      model.compile(optimizer=optimizer, loss="mse", **kwargs)
      untie = swe_tf.UntieCallback()
      model.fit(x, y, batch_size=2, verbose=0, callbacks=[untie])

    inner = tf_keras.optimizers.SGD
    with self.assertRaisesRegex(errors.UsageError, "SharedWeightsOptimizer"):
      fit(inner())
    with self.assertRaisesRegex(errors.UsageError, "untie_step"):
      fit(swe_tf.SharedWeightsOptimizer(inner(), plan))
    at_3 = swe_tf.SharedWeightsOptimizer(inner(), plan, untie_step=3)
    with self.assertRaisesRegex(errors.UsageError, "steps_per_execution"):
      fit(at_3, steps_per_execution=2)


_WHOLE = (0, 0, 0, 0)
_HIGH, _LOW = 0.9, 0.1


def _ask(rule, step, *adjacent, groups=_WHOLE):
  cosines = schedule.GradientCosines(sum(adjacent) / 3, adjacent)
  return rule.regroup(step, cosines, groups)


class UntieByCorrelationTest(tf.test.TestCase, parameterized.TestCase):
  def test_looks_every_interval(self):
    rule = schedule.UntieByCorrelation(interval=10)
    self.assertEqual(rule.cosine_interval, 10)
    self.assertEqual(
      [rule.next_decision(s) for s in (0, 9, 10, 15)], [10, 10, 20, 20]
    )
    for step in (0, 5, 11):  # Not its steps: nothing is decided.
      self.assertEqual(_ask(rule, step, _LOW, _LOW, _LOW), _WHOLE)
    self.assertEmpty(rule.decisions)

  @parameterized.named_parameters(
    ("half_is_not_most", (_LOW, _LOW, _HIGH, _HIGH)),
    ("rho_itself_is_not_low", (0.5, 0.5, 0.5)),
    ("one_unit_has_no_neighbour", ()),
  )
  def test_stays_tied(self, adjacent):
    rule = schedule.UntieByCorrelation(interval=10, rho=0.5, patience=1)
    whole = (0,) * (len(adjacent) + 1)
    cosines = schedule.GradientCosines(0.5, adjacent)
    self.assertEqual(rule.regroup(10, cosines, whole), whole)

  def test_what_was_not_measured_counts_for_nothing(self):
    rule = schedule.UntieByCorrelation(interval=10, patience=2)
    _ask(rule, 10, _LOW, _LOW, _LOW)
    self.assertEqual(_ask(rule, 20, *[float("nan")] * 3), _WHOLE)
    self.assertLen(rule.decisions, 1)
    self.assertEqual(_ask(rule, 30, _LOW, _LOW, _LOW), schedule.UNTIED)


class StagesTest(parameterized.TestCase):
  @parameterized.parameters(
    ([(9, 2)], "step 9, which is not between 0 and the untie step .8."),
    ([(0, 2)], "step 0, which"),
    ([(3, 2), (5, 3)], "units of 3, after units of 2"),
    ([(3, 1)], "units of 1, after units of 1"),
  )
  def test_stages_that_cannot_follow_each_other(self, stages, message):
    with self.assertRaisesRegex(errors.UsageError, message):
      schedule.UntieInStages(8, stages)
