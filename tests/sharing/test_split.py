"""Ties that are split into smaller ones, against the literal algorithm."""

from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import swe_tf
from swe_tf import errors
from swe_tf.sharing import gradients
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from tests.sharing import toy

_EVERY_SECOND, _IN_RUNS = (0, 1, 0, 1), (0, 0, 0, 3)
_SPLIT_AFTER, _UNTIE_AFTER = 2, 4


def _literal_groups(step, groups):
  """Returns which blocks share in update `step + 1`, by the definition."""
  if step < _SPLIT_AFTER:
    return [range(toy.NUM_LAYERS)]
  if step < _UNTIE_AFTER:
    return [[i for i, g in enumerate(groups) if g == first]
            for first in sorted(set(groups))]
  return [[i] for i in range(toy.NUM_LAYERS)]


def _run_literally(make_optimizer, groups, num_replicas):
  strategy = toy.strategy_of(num_replicas)
  with strategy.scope():
    model = toy.make_stack()
    swe_tf.SharingPlan.from_layers(model.blocks).tie_weights()
    optimizer = make_optimizer()

  def step_of(number):
    def step(x, y):
      grads = toy.gradients_of(model, x, y)
      by_name = {v.name: g for g, v in zip(grads, model.trainable_variables)}
      for group in _literal_groups(number, groups):
        blocks = [model.blocks[i].trainable_variables for i in group]
        for tie in zip(*blocks):
          mean = tf.reduce_mean([by_name[v.name] for v in tie], axis=0)
          by_name.update({v.name: mean for v in tie})
      optimizer.apply_gradients(
          [(by_name[v.name], v) for v in model.trainable_variables])
    return step

  for number, batch in enumerate(toy.batches()):
    toy.run_steps(strategy, step_of(number), [batch])
  return toy.state_of(model, optimizer)


def _run_split(make_optimizer, groups, num_replicas):
  strategy = toy.strategy_of(num_replicas)
  with strategy.scope():
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    inner = make_optimizer()
    optimizer = swe_tf.SharedWeightsOptimizer(inner, plan)
    optimizer.begin()

  def step(x, y):
    grads = toy.gradients_of(model, x, y)
    optimizer.apply_gradients(list(zip(grads, model.trainable_variables)))

  for number, batch in enumerate(toy.batches()):
    if number == _SPLIT_AFTER:
      optimizer.split(groups)
    if number == _UNTIE_AFTER:
      optimizer.split(schedule.UNTIED)
    toy.run_steps(strategy, step, [batch])
  return toy.state_of(model, inner)


class SplitTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      optimizer=["momentum", "adamw_clip", "lamb_global_clipnorm",
                 "adam_global_clipnorm"],
      groups=[_EVERY_SECOND, _IN_RUNS],
      num_replicas=[1, 2],
  )
  def test_equals_the_mean_over_the_smaller_ties(
      self, optimizer, groups, num_replicas):
    make = toy.OPTIMIZERS[optimizer]
    ours = _run_split(make, groups, num_replicas)
    literal = _run_literally(make, groups, num_replicas)
    self.assertLessEqual(toy.max_relative_difference(ours, literal), 1e-6)

  def test_a_new_stem_without_the_slots_of_the_old_one_is_noticed(self):
    make = toy.OPTIMIZERS["adamw_clip"]
    copy = optimizer_lib.SharedWeightsOptimizer._copy_slots_to  # pylint: disable=protected-access

    def only_when_untied(optimizer, variables):
      if optimizer.plan.groups != (0,) * toy.NUM_LAYERS:
        copy(optimizer, variables)

    with mock.patch.object(
        optimizer_lib.SharedWeightsOptimizer, "_copy_slots_to",
        only_when_untied):
      ours = _run_split(make, _EVERY_SECOND, 1)
    literal = _run_literally(make, _EVERY_SECOND, 1)
    self.assertGreater(toy.max_relative_difference(ours, literal), 1e-3)

  def test_a_plan_names_its_groups(self):
    plan = swe_tf.SharingPlan.from_layers(toy.make_stack().blocks)
    self.assertEqual(str(plan.split(_EVERY_SECOND)), "2x2")
    self.assertEqual(
        str(plan.split(_IN_RUNS)), "1x4 in groups 0-2, 3")
    parts = plan.split(_IN_RUNS)
    self.assertEqual([len(tie) for tie in parts.ties], [3, 3, 1, 1])
    self.assertEqual(parts.whole_ties, plan.ties)
    with self.assertRaisesRegex(errors.UsageError, "cannot be tied again"):
      parts.split((0, 0, 0, 0))
    for wrong in ((0, 0, 0), (0, 2, 2, 2), (0, 0, 1, 1)):
      with self.assertRaisesRegex(errors.UsageError, "the first unit of its"):
        plan.split(wrong)

  def test_cosines_of_neighbours(self):
    rng = np.random.default_rng(0)
    units = [[rng.normal(size=(3, 2)), rng.normal(size=5)] for _ in range(4)]
    by_role = [[tf.constant(unit[role]) for unit in units] for role in range(2)]
    flat = [np.concatenate([part.ravel() for part in unit]) for unit in units]
    expected = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for a, b in zip(flat, flat[1:])]
    self.assertAllClose(gradients.adjacent_cosines(by_role), expected)

  def test_the_optimizer_measures_them_every_interval(self):
    model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    optimizer = swe_tf.SharedWeightsOptimizer(
        toy.OPTIMIZERS["adamw_clip"](), plan, cosine_interval=2)
    optimizer.begin()
    expected = None
    for number, (x, y) in enumerate(toy.batches()[:3], start=1):
      grads = toy.gradients_of(model, x, y)
      if number == 2:
        by_unit = gradients.gradients_by_unit(
            list(zip(grads, model.trainable_variables)), plan)
        expected = gradients.adjacent_cosines(by_unit)
      optimizer.apply_gradients(list(zip(grads, model.trainable_variables)))
      measured = optimizer.gradient_cosines
      self.assertLen(measured.adjacent, 3)
      if number == 1:
        self.assertTrue(np.isnan(measured.adjacent).all())
      else:
        self.assertAllClose(measured.adjacent, expected)


if __name__ == "__main__":
  tf.test.main()
