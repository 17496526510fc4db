"""The optimizer against the literal Algorithm 1 (`toy.run_algorithm_1`)."""

import collections
import itertools
import os
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

from official.modeling.optimization import lamb
from official.modeling.optimization import legacy_adamw
import swe_tf
from swe_tf import errors
from swe_tf.sharing import cosines
from swe_tf.sharing import gradients
from swe_tf.sharing import schedule
from swe_tf.sharing import slots
from tests.sharing import every_optimizer
from tests.sharing import toy

_UNITS = (1, 2, toy.NUM_LAYERS)


def _compare(make, unit_size, num_replicas, splits=None, **kwargs):
  """Returns the difference from the oracle, and what was seen while shared."""
  ours, identical = toy.train_shared_then_unshared(
    make, unit_size, num_replicas, splits=splits, **kwargs
  )
  oracle = toy.run_algorithm_1(make, unit_size, num_replicas, splits)
  return toy.max_relative_difference(ours, oracle), identical


class OracleTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    optimizer=list(toy.OPTIMIZERS),
    unit_size=_UNITS,
    num_replicas=(1, 2, 4),
  )
  def test_equals_algorithm_1(self, optimizer, unit_size, num_replicas):
    make = toy.OPTIMIZERS[optimizer]
    difference, identical = _compare(make, unit_size, num_replicas)
    self.assertLessEqual(difference, 1e-6)
    self.assertTrue(all(identical), "a tie differs within while shared")

  @parameterized.product(
    num_replicas=(1, 2),
    # Under loss scaling Model Garden's AdamW silently does not clip.
    how=(
      {"compiled": True},
      {"wrap": tf_keras.mixed_precision.LossScaleOptimizer},
    ),
  )
  def test_compiled_or_scaled_step_equals_algorithm_1(self, num_replicas, how):
    make = toy.OPTIMIZERS["adamw_clip"]
    self.assertLessEqual(_compare(make, 1, num_replicas, **how)[0], 1e-6)

  @parameterized.product(
    optimizer=("momentum", "adamw_clip", "lamb_global_clipnorm"),
    splits=(
      {1: (0, 1, 0, 1)},  # Every second unit: 1x4, then 2x2.
      {1: (0, 0, 0, 3)},
      {1: (0, 0, 2, 2), 2: (0, 0, 2, 3)},
    ),
    num_replicas=(1, 2),
  )
  def test_split_equals_algorithm_1(self, optimizer, splits, num_replicas):
    make = toy.OPTIMIZERS[optimizer]
    ours, identical = toy.train_shared_then_unshared(
      make, 1, num_replicas, splits=splits
    )
    oracle = toy.run_algorithm_1(make, 1, num_replicas, splits)
    # 1.04e-6 on some processors; a mutation differs by more than 1e-3.
    self.assertLessEqual(toy.max_relative_difference(ours, oracle), 2e-6)
    self.assertTrue(all(identical), "a tie differs within while shared")
    never = toy.run_algorithm_1(make, 1, num_replicas)
    self.assertGreater(toy.max_relative_difference(ours, never), 1e-3)


class EveryOptimizerTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.named_parameters(*every_optimizer.discover().items())
  def test_equals_algorithm_1_or_is_refused(self, kind):
    for sparse, compiled in itertools.product((False, True), repeat=2):
      result = every_optimizer.compare(kind, sparse, compiled)
      if kind is tf_keras.optimizers.Nadam:
        self.assertIn("legacy.Nadam", result)
      elif not isinstance(result, str):
        self.assertLessEqual(result, 2e-5, f"{sparse=} {compiled=}")


class MutationTest(tf.test.TestCase):
  """Breaks the method on purpose: the comparison with the oracle must fail."""

  def _difference(self, **kwargs):
    return _compare(toy.OPTIMIZERS["adamw_clip"], 1, 1, **kwargs)[0]

  def test_sum_instead_of_mean(self):
    mean = gradients.mean_over_ties

    def total(grads_and_vars, plan):
      stems = {id(stem) for stem in plan.stems}
      return [
        (g * plan.num_units if id(v) in stems else g, v)
        for g, v in mean(grads_and_vars, plan)
      ]

    with mock.patch.object(gradients, "mean_over_ties", total):
      self.assertGreater(self._difference(), 1e-3)

  def test_clipping_that_counts_a_tie_once(self):
    clip = gradients.clip_by_global_norm
    once = lambda pairs, norm, multiplicity: clip(pairs, norm, {})
    with mock.patch.object(gradients, "clip_by_global_norm", once):
      self.assertGreater(self._difference(), 1e-3)

  def test_forgetting_one_slot(self):
    slots_of = slots.slots_of

    def all_but_one(optimizer, variable):
      return {"m": slots_of(optimizer, variable)["m"]}

    copy = slots.copy_slots

    def forgetful(optimizer, pairs):
      with mock.patch.object(slots, "slots_of", all_but_one):
        copy(optimizer, pairs)

    with mock.patch.object(slots, "copy_slots", forgetful):
      self.assertGreater(self._difference(), 1e-3)

  def test_splitting_without_the_slots(self):
    with mock.patch.object(
      swe_tf.SharedWeightsOptimizer, "_copy_slots_to", lambda self, v: None
    ):
      self.assertGreater(self._difference(splits={1: (0, 1, 0, 1)}), 1e-3)

  def test_untying_one_step_late(self):
    self.assertGreater(self._difference(untie_after=toy.TAU + 1), 1e-3)


class PhaseTest(tf.test.TestCase):
  def _optimizer(self, inner, untie_step=None, **kwargs):
    self.model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(self.model.blocks)
    return swe_tf.SharedWeightsOptimizer(inner, plan, untie_step, **kwargs)

  def _step(self, optimizer):
    ((x, y),) = toy.batches(1)
    grads = toy.gradients_of(self.model, x, y)
    optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
    return dict(zip([v.name for v in self.model.trainable_variables], grads))

  def test_branches_have_no_slots_while_shared(self):
    inner = toy.OPTIMIZERS["adamw_clip"]()
    optimizer = self._optimizer(inner)
    self._step(optimizer)
    untied = 4  # Kernel and bias of the first and the last layer.
    self.assertLen(inner.weights, 1 + 2 * (untied + len(optimizer.plan.ties)))
    optimizer.untie()
    everything = len(self.model.trainable_variables)
    self.assertLen(inner.weights, 1 + 2 * everything)
    self._step(optimizer)
    optimizer.untie()
    self.assertEqual(optimizer.untied_at, 1)

  def test_gradient_cosines_are_those_of_whole_gradients_of_all_units(self):
    optimizer = self._optimizer(tf_keras.optimizers.SGD(0.1), cosine_interval=1)
    optimizer.split((0, 0, 2, 2))
    measured = optimizer.gradient_cosines
    self.assertTrue(np.all(np.isnan([measured.mean, *measured.adjacent])))
    grads = self._step(optimizer)
    flat = [
      np.concatenate(
        [grads[v.name].numpy().ravel() for v in block.trainable_variables]
      )
      for block in self.model.blocks
    ]
    unit = np.array([each / np.linalg.norm(each) for each in flat])
    table = unit @ unit.T
    pairs = table[np.triu_indices(len(flat), 1)]
    measured = optimizer.gradient_cosines
    self.assertAllClose(measured.mean, np.mean(pairs), rtol=1e-5)
    self.assertAllClose(measured.adjacent, np.diag(table, 1), rtol=1e-5)

  def test_a_gradient_that_is_zero_or_absent_has_no_direction(self):
    one, minus = tf.constant([1.0, 0.0]), tf.constant([-2.0, 0.0])
    zero = tf.zeros([2])
    rows = [[one, minus, zero, one], [one, None, zero, one]]
    self.assertAllClose(cosines.adjacent(rows), [-1 / np.sqrt(2.0), 0.0, 0.0])

  def test_groups_are_in_the_checkpoint(self):
    optimizer = self._optimizer(toy.OPTIMIZERS["momentum"]())
    self._step(optimizer)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer)
    earlier = checkpoint.save(os.path.join(self.get_temp_dir(), "whole"))
    optimizer.split((0, 0, 0, 3))
    path = checkpoint.save(os.path.join(self.get_temp_dir(), "split"))
    self.assertEqual(optimizer.plan.groups, (0, 0, 0, 3))
    checkpoint.restore(earlier)  # A run that recovers goes back.
    self.assertEqual(str(optimizer.plan), "1x4")
    restored = self._optimizer(toy.OPTIMIZERS["momentum"]())
    self.assertEqual(str(restored.plan), "1x4")
    tf.train.Checkpoint(optimizer=restored).restore(path)
    self.assertEqual(restored.plan.groups, (0, 0, 0, 3))
    self.assertEqual(restored.phase, "shared")
    restored.split(schedule.UNTIED)
    self.assertEqual(restored.phase, "unshared")

  def test_refuses_what_it_cannot_wrap(self):
    import keras  # Keras 3.

    plan = swe_tf.SharingPlan.from_layers(toy.make_stack().blocks)
    wrap = swe_tf.SharedWeightsOptimizer
    optimizers = tf_keras.optimizers
    scaled = tf_keras.mixed_precision.LossScaleOptimizer(optimizers.SGD())
    changed = optimizers.legacy.SGD(gradient_transformers=[lambda x: x])
    clips = optimizers.legacy.SGD(gradient_aggregator=lambda pairs: pairs)
    wrapped = wrap(optimizers.SGD(), plan)
    for inner, tau, kind, message in (
      (keras.optimizers.SGD(), None, TypeError, "Keras 3.*same Keras"),
      (optimizers.SGD(), 2.5, errors.UsageError, r"\(2.5\) must be a whole"),
      (optimizers.SGD(), -1, errors.UsageError, r"\(-1\) must be a whole"),
      (scaled, None, TypeError, "the other way round"),
      (changed, None, errors.UsageError, "gradient_transformers"),
      (clips, None, errors.UsageError, "gradient_aggregator"),
      (wrapped, None, errors.UsageError, "is a Shared.* already"),
    ):
      with self.assertRaisesRegex(kind, message):
        wrap(inner, plan, untie_step=tau)
    for no_plan in (None, [plan]):
      with self.assertRaisesRegex(TypeError, "plan must be a SharingPlan"):
        wrap(optimizers.SGD(), no_plan)

  def test_an_asynchronous_strategy_is_refused(self):
    kind = tf.distribute.ParameterServerStrategy  # A real one needs a cluster.
    strategy = kind.__new__(kind)
    with mock.patch.object(tf.distribute, "get_strategy", lambda: strategy):
      with self.assertRaisesRegex(errors.UsageError, "do not wait for each"):
        self._optimizer(tf_keras.optimizers.SGD())

  def test_a_step_compiled_before_untie_says_so(self):
    optimizer = self._optimizer(tf_keras.optimizers.SGD(0.1))
    step = tf.function(toy.make_step(self.model, optimizer))
    ((x, y),) = toy.batches(1)
    step(x, y)
    optimizer.untie()
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "it again"):
      step(x, y)

  def test_weight_decay_that_splits_a_tie_is_refused(self):
    wrap, message = swe_tf.SharedWeightsOptimizer, "could not stay equal"
    self.model = toy.make_stack()
    plan = swe_tf.SharingPlan.from_layers(self.model.blocks)
    for make in (legacy_adamw.AdamWeightDecay, lamb.LAMB):
      inner = make(
        0.1, weight_decay_rate=0.1, exclude_from_weight_decay=["block_1"]
      )
      with self.assertRaisesRegex(errors.UsageError, message):
        wrap(inner, plan)
      wrap(inner, plan, untie_step=0)
    optimizer = wrap(tf_keras.optimizers.AdamW(0.1), plan)
    optimizer.exclude_from_weight_decay(var_names=["block_1"])
    with self.assertRaisesRegex(errors.UsageError, message):
      self._step(optimizer)

  def test_no_gradients_at_all(self):
    for name in ("adam_global_clipnorm", "adamw_clip", "momentum"):
      optimizer = self._optimizer(toy.OPTIMIZERS[name]())
      optimizer.apply_gradients([])
      pairs = [(None, v) for v in self.model.trainable_variables]
      for call in (optimizer.apply_gradients, optimizer.aggregate_gradients):
        with self.assertRaisesRegex(errors.UsageError, "No gradients provided"):
          call(pairs)
      some = [(tf.ones_like(v), v) for _, v in pairs[1:]]
      optimizer.apply_gradients(
        [pairs[0], *some], skip_gradients_aggregation=True
      )
      self.assertEqual(int(optimizer.iterations), 1)

  def test_variables_that_the_plan_does_not_know(self):
    for inner in (toy.OPTIMIZERS["momentum"](), toy.OPTIMIZERS["sgd"]()):
      optimizer = self._optimizer(inner)
      other, self.model = self.model, toy.make_stack()
      with self.assertRaisesRegex(errors.UsageError, "from the layers of this"):
        self._step(optimizer)
      for frozen in (other.blocks[:1], other.blocks[1:], other.blocks):
        self.model = other
        for layer in other.blocks:
          layer.trainable = layer not in frozen
        with self.assertRaisesRegex(errors.UsageError, "freeze layers before"):
          self._step(optimizer)

  def test_layers_that_are_frozen_after_an_update(self):
    optimizer = self._optimizer(toy.OPTIMIZERS["momentum"]())
    self._step(optimizer)
    for layer in self.model.blocks[1:]:
      layer.trainable = False
    with self.assertRaisesRegex(errors.UsageError, "freeze layers before"):
      self._step(optimizer)

  def test_settings_reach_the_inner_optimizer_or_raise(self):
    optimizer = self._optimizer(tf_keras.optimizers.AdamW(0.1))
    inner = optimizer.inner_optimizer
    optimizer.clipnorm, optimizer.beta_1 = 0.5, 0.8
    self.assertEqual((inner.clipnorm, inner.beta_1), (0.5, 0.8))
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    self.assertFalse(inner._use_weight_decay(self.model.blocks[0].bias))
    self._step(optimizer)
    self.assertLen(optimizer.variables(), len(optimizer.variables))
    values = [w + 1 for w in optimizer.get_weights()]
    optimizer.set_weights(values)
    self.assertAllEqual(inner.variables[-1], values[len(inner.variables) - 1])
    with self.assertRaisesRegex(errors.UsageError, "set_weights takes"):
      optimizer.set_weights(values[:-1])
    legacy = self._optimizer(tf_keras.optimizers.legacy.Adam(0.1))
    legacy.clipvalue = 0.25
    self.assertEqual(legacy.inner_optimizer.clipvalue, 0.25)
    self.assertNotEmpty(legacy.variables())
    with self.assertRaisesRegex(errors.UsageError, "has no weight_decay"):
      legacy.weight_decay = 0.1
    with self.assertRaisesRegex(errors.UsageError, "exclude_from_weight_decay"):
      legacy.exclude_from_weight_decay(var_names=["bias"])
    with self.assertRaisesRegex(RuntimeError, "iterations"):
      legacy.iterations = tf.Variable(0, dtype=tf.int64)

  def test_tensorboard_has_the_rate_of_a_schedule(self):
    optimizers, board = tf_keras.optimizers, tf_keras.callbacks.TensorBoard()
    rate = optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
    for kind in (optimizers.SGD, optimizers.legacy.SGD):
      optimizer = self._optimizer(kind(rate))
      self._step(optimizer)
      self.model.compile(optimizer)
      board.model = self.model
      logs = board._collect_learning_rate({})
      self.assertAllClose(logs["learning_rate"], 0.25)


class FitTest(tf.test.TestCase, parameterized.TestCase):
  def _fit(self, inner, tau, callbacks=(), batches=4, epochs=1, **kwargs):
    self.model = toy.make_stack()
    self.plan = swe_tf.SharingPlan.from_layers(self.model.blocks)
    self.plan.tie_weights()
    self.optimizer = swe_tf.SharedWeightsOptimizer(inner, self.plan, tau)
    self.model.compile(self.optimizer, "mse", **kwargs)
    data = tf.data.Dataset.from_tensor_slices(
      tuple(map(np.stack, zip(*toy.batches(batches))))
    )
    self.model.fit(data, epochs=epochs, callbacks=list(callbacks), verbose=0)

  @parameterized.parameters(None, 9)
  def test_averages_of_a_fit_that_ends_while_shared(self, tau):
    inner = tf_keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    self._fit(inner, tau)
    for stem, *branches in self.plan.ties:
      for branch in branches:
        self.assertAllEqual(stem, branch)

  @parameterized.parameters(
    {}, {"run_eagerly": True}, {"jit_compile": True}, {"steps_per_execution": 4}
  )
  def test_refuses_to_share_after_tau(self, **how):
    kinds = (errors.UsageError, tf.errors.InvalidArgumentError)
    with self.assertRaisesRegex(kinds, "UntieCallback"):
      self._fit(tf_keras.optimizers.SGD(0.1), 2, **how)

  def test_executions_that_do_not_divide_an_epoch(self):
    inner = lambda: tf_keras.optimizers.SGD(0.1)
    how = {"batches": 5, "epochs": 3, "steps_per_execution": 2}
    untie = swe_tf.UntieCallback
    with self.assertRaisesRegex(errors.UsageError, "counted anew in each"):
      self._fit(inner(), 8, [untie()], **how)
    self._fit(inner(), 9, [untie()], **how)
    self.assertEqual(self.optimizer.untied_at, 9)


class CompiledStepTest(tf.test.TestCase):
  def test_unshared_step_has_the_ops_of_the_stock_step(self):
    def histogram(wrap):
      model = toy.make_stack()
      plan = swe_tf.SharingPlan.from_layers(model.blocks)
      optimizer = wrap(toy.OPTIMIZERS["adamw_clip"](), plan)

      step = tf.function(toy.make_step(model, optimizer))
      graph = step.get_concrete_function(*toy.batches(1)[0]).graph
      return collections.Counter(op.type for op in graph.get_operations())

    def untied(inner, plan):
      optimizer = swe_tf.SharedWeightsOptimizer(inner, plan)
      optimizer.untie()
      return optimizer

    stock = histogram(lambda inner, plan: inner)
    self.assertEqual(histogram(untied), stock)
    self.assertNotEqual(histogram(swe_tf.SharedWeightsOptimizer), stock)

  def test_only_means_are_reduced_while_shared(self):
    strategy = toy.strategy_of(2)
    with strategy.scope():
      model = toy.make_stack()
      plan = swe_tf.SharingPlan.from_layers(model.blocks)
      optimizer = swe_tf.SharedWeightsOptimizer(
        toy.OPTIMIZERS["adamw_clip"](), plan
      )

    step = toy.make_step(model, optimizer)

    def bytes_of_a_step():
      compiled = tf.function(lambda x, y: strategy.run(step, args=(x, y)))
      graph = compiled.get_concrete_function(*toy.batches(1)[0]).graph
      reduced = [
        op.inputs[0]
        for op in graph.get_operations()
        if op.type == "CollectiveReduceV2"
      ]
      total = sum(t.dtype.size * int(np.prod(t.shape)) for t in reduced)
      return total // strategy.num_replicas_in_sync

    everything = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    per_unit = sum(int(np.prod(stem.shape)) for stem in plan.stems)
    tied = per_unit * plan.num_units
    shared = bytes_of_a_step()
    optimizer.untie()
    unshared = bytes_of_a_step()
    self.assertEqual(shared, 4 * (everything - tied + per_unit))
    self.assertEqual(unshared, 4 * everything)


class SlotsTest(tf.test.TestCase):
  def test_an_optimizer_that_hides_a_slot_is_refused(self):
    class Hides(tf_keras.optimizers.SGD):
      def build(self, var_list):
        super().build(var_list)
        self.hidden = self.add_variable([3], name="hidden")

    inner = Hides(0.1, momentum=0.9)
    model = toy.make_stack()
    inner.build(model.trainable_variables)
    with self.assertRaisesRegex(errors.UsageError, "hidden"):
      slots.slots_of(inner, model.trainable_variables[0])


class RestoredTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters("momentum", "adam_global_clipnorm", "adamw_clip")
  def test_untied_before_the_first_update_after_a_restore(self, optimizer):
    """The slots of a new optimizer are restored only when it is built."""
    make = toy.OPTIMIZERS[optimizer]
    path = os.path.join(self.get_temp_dir(), "ckpt")
    data = toy.batches()

    def make_both():
      model = toy.make_stack()
      plan = swe_tf.SharingPlan.from_layers(model.blocks, 1)
      sharing = swe_tf.SharedWeightsOptimizer(make(), plan)
      checkpoint = tf.train.Checkpoint(model=model, optimizer=sharing)
      return model, sharing, checkpoint, toy.make_step(model, sharing)

    _, sharing, checkpoint, step = make_both()
    sharing.begin()
    strategy = toy.strategy_of(1)
    toy.run_steps(strategy, step, data[: toy.TAU])
    path = checkpoint.write(path)
    model, sharing, checkpoint, step = make_both()
    checkpoint.read(path)
    sharing.untie()
    toy.run_steps(strategy, tf.function(step), data[toy.TAU :])
    oracle = toy.run_algorithm_1(make, 1, 1)
    ours = toy.state_of(model, sharing.inner_optimizer)
    self.assertLessEqual(toy.max_relative_difference(ours, oracle), 1e-6)
