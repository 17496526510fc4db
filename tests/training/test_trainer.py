"""The trainer: phases, interruption and resumption, wrappers, checkpoints."""

import contextlib
import io
import os

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

from official.core import task_factory
from official.core import train_lib
from official.core import train_utils
from official.modeling import performance
from swe_tf import errors
from swe_tf.methods import plans
from swe_tf.sharing import schedule
from swe_tf.sharing import wrapper
from swe_tf.training import trainer as trainer_lib
from tests import tiny
from tests.sharing import toy
from tests.training import runs

_EMA = {"trainer": {"optimizer_config": {"ema": {"average_decay": 0.9}}}}
_FLOAT16 = {
  "runtime": {"mixed_precision_dtype": "float16", "loss_scale": 512.0}
}
_UNITS_OF_TWO = {
  "task": {"sharing": {"unit_size": 2}, **tiny.encoder(num_layers=4)}
}
_NEW_ADAM = {
  "trainer": {"optimizer_config": {"optimizer": {"type": "adam_experimental"}}}
}


class TrainerTest(runs.RunsTestCase):
  def _runner(self, *layers, name="run", **kwargs):
    config = tiny.config_of(self.base, *layers)
    if config.runtime.mixed_precision_dtype:
      performance.set_mixed_precision_policy(
        config.runtime.mixed_precision_dtype
      )
    return tiny.make_runner(
      config, os.path.join(self.create_tempdir().full_path, name), **kwargs
    )

  def test_unties_after_exactly_tau_updates_for_any_steps_per_loop(self):
    trainers = []
    for steps_per_loop in (1, 5, tiny.STEPS):
      runner = self._runner({"trainer": tiny.every(steps_per_loop)})
      runner.controller.train(tiny.STEPS)
      self.assertEqual(runner.trainer._phases.optimizer.untied_at, tiny.TAU)  # pylint: disable=protected-access
      trainers.append(runner.trainer)
      self.assert_same_state(trainers[-1], trainers[0])

  @parameterized.named_parameters(
    ("adamw", {}, 1),
    ("two_replicas", {}, 2),
    ("units_of_two", _UNITS_OF_TWO, 1),
    ("new_optimizer", _NEW_ADAM, 1),
    ("float16_and_ema", {**_EMA, **_FLOAT16}, 1),
  )
  def test_resumed_equals_straight(self, override, num_replicas):
    strategy = toy.strategy_of(num_replicas)
    straight = self._runner(override, strategy=strategy)
    with strategy.scope():
      straight.controller.train(tiny.STEPS)
    directory = self.create_tempdir().full_path
    config = tiny.config_of(self.base, override)
    # While shared (slots only on the stem), at tau, after it.
    stops = (3, tiny.TAU, 10) if override == {} else (5,)
    resumed = tiny.train(
      config, directory, *stops, tiny.STEPS, strategy=strategy
    )
    self.assertEqual(resumed._phases.optimizer.untied_at, tiny.TAU)  # pylint: disable=protected-access
    self.assert_same_state(resumed, straight.trainer)

  @parameterized.parameters(None, 2)
  def test_an_evaluation_of_averages_leaves_the_weights_as_they_were(self, n):
    """Also without a strategy, where stock raises; n replicas otherwise."""
    strategy = toy.strategy_of(n) if n else None
    runner = self._runner(_EMA, mode="train_and_eval", strategy=strategy)
    with runner.strategy.scope():
      runner.controller.train(2)
      before = tiny.final_state(runner.trainer)
      runner.trainer.optimizer.swap_weights()
      self.assertNotAllEqual(tiny.final_state(runner.trainer)["0"], before["0"])
      runner.trainer.optimizer.swap_weights()
      runner.controller.evaluate(1)
    for name, value in tiny.final_state(runner.trainer).items():
      self.assertAllEqual(value, before[name], name)

  def test_run_experiment_shares_with_our_trainer_and_refuses_stocks(self):
    config = tiny.config_of(self.base)
    task = task_factory.get_task(config.task)

    def run(folder, trainer=None):
      train_lib.run_experiment(
        distribution_strategy=tf.distribute.get_strategy(),
        mode="train",
        task=task,
        params=config,
        model_dir=os.path.join(self.get_temp_dir(), folder),
        trainer=trainer,
      )

    # AutoGraph wraps it, since it is found in the step.
    with self.assertRaisesRegex(Exception, "nothing would be .* gin/swe.gin"):
      run("stock")
    optimizer = train_utils.create_optimizer(task, config)
    model = task.build_model()
    ours = trainer_lib.SharedWeightsTrainer(config, task, model, optimizer)
    run("ours", ours)
    self.assertEqual(ours.optimizer.untied_at, tiny.TAU)

  def test_float16_scales_the_loss_and_clips(self):
    runner = self._runner(_FLOAT16)
    scaler = wrapper.loss_scaling_of(runner.trainer.optimizer)
    self.assertEqual(float(scaler.loss_scale), 512.0)
    runner.controller.train(1)
    self.assertTrue(scaler._loss_has_been_scaled)  # pylint: disable=protected-access
    self.assertTrue(scaler._gradients_have_been_unscaled)  # pylint: disable=protected-access

  def test_says_what_is_shared(self):
    fraction = {"unit_size": 1, "untie_step": None}
    for sharing, line in (
      (
        {"rule": "staged", "stages": [{"unit_size": 2, "from_step": 3}]},
        f"as 1x2 until step {tiny.TAU} of {tiny.STEPS}, and change at step 3",
      ),
      (fraction | {"untie_fraction": 0.01}, "untie_fraction=0.01, unit_size=1"),
    ):
      output = io.StringIO()
      with contextlib.redirect_stdout(output):
        self._runner({"task": {"sharing": sharing}})
      self.assertIn(line, output.getvalue())

  def test_branches_start_as_copies_of_an_init_checkpoint(self):
    source = self._runner()
    source.controller.train(10)  # Three steps untied.
    path = source.checkpoint_manager.latest_checkpoint
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      runner = self._runner({"task": {"init_checkpoint": path}})
    self.assertIn("weights of the others are not used", output.getvalue())
    blocks = runner.trainer.model.encoder_network.transformer_layers
    trained = source.trainer.model.encoder_network.transformer_layers
    for block in blocks:
      for ours, stem in zip(block.variables, trained[0].variables):
        self.assertAllEqual(ours, stem)

  def test_logs_show_the_method_at_work(self):
    runner = self._runner()
    shared = runner.trainer.train(tf.constant(5))
    self.assertEqual(shared["sharing/phase"], 0.0)
    self.assertEqual(shared["sharing/untie_step"], tiny.TAU)
    self.assertBetween(shared["sharing/gradient_cosine"], -1.0, 1.0)
    unshared = runner.trainer.train(tf.constant(5))
    self.assertEqual(unshared["sharing/phase"], 1.0)
    self.assertGreater(unshared["sharing/distance_from_mean"], 0.0)

  def test_a_custom_rule_decides(self):
    class Rule(schedule.UntieRule):
      seen = []

      def next_decision(self, step):
        return step + 1

      def should_untie(self, step, gradient_cosine):
        self.seen.append((step, gradient_cosine))
        return step >= 6

    runner = self._runner(untie_rule=Rule())
    runner.controller.train(8)
    self.assertEqual(runner.trainer._phases.optimizer.untied_at, 6)  # pylint: disable=protected-access
    cosines = dict(Rule.seen)
    self.assertTrue(np.isnan(cosines[0]))
    self.assertBetween(cosines[5], -1.0, 1.0)  # Measured every 5 steps.

  def test_a_checkpoint_of_another_architecture_is_refused(self):
    directory = self.create_tempdir().full_path
    tiny.train(tiny.config_of(self.base), directory, 1)
    for change, says in (
      ({"hidden_size": 12}, r"(?s)different architecture.*shapes that differ"),
      ({"num_layers": 1}, "only in the checkpoint"),
      ({"num_layers": 3}, "only in the mod"),
    ):
      config = tiny.config_of(self.base, {"task": tiny.encoder(**change)})
      with self.assertRaisesRegex(errors.UsageError, says):
        tiny.make_runner(config, directory, accept_changes=True)

  def test_a_model_without_blocks_is_refused(self):
    trainer = self._runner().trainer
    model = tf_keras.Model()
    model.encoder_network = type("Encoder", (tf_keras.Model,), {})()
    with self.assertRaisesRegex(errors.UsageError, "Encoder has no .*blocks"):
      plans.plan_of(model, trainer.task.task_config.sharing)
