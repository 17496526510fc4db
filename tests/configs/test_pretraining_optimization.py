"""The optimization of section 5.1, and that it follows `train_steps`."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from official.core import task_factory
from official.core import train_utils
from tests import tiny

_PEAK = 3e-4


def config_of(**trainer):
  return tiny.config_of({"trainer": trainer})


def optimizer_of(config):
  task = task_factory.get_task(config.task)
  return train_utils.create_optimizer(task, config)


def learning_rate_of(config):
  return optimizer_of(config).learning_rate


class LearningRateTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(500_000, 1_000_000)
  def test_peak_at_10k_and_zero_at_the_end(self, steps):
    rate = learning_rate_of(config_of(train_steps=steps))
    # Equal, not close: a decay from step 0 misses the peak by 2%.
    self.assertEqual(rate(10_000), np.float32(_PEAK))
    self.assertEqual(rate(steps), 0.0)
    self.assertAllClose(rate(5_000), _PEAK / 2, rtol=1e-6)
    self.assertAllClose(rate((steps + 10_000) // 2), _PEAK / 2, rtol=1e-6)

  @parameterized.parameters(1_000, 1_500, 77_777)
  def test_short_runs_warm_up_for_a_fiftieth(self, steps):
    config = config_of(train_steps=steps)
    warmup = config.trainer.optimizer_config.warmup.get().warmup_steps
    self.assertEqual(warmup, round(steps / 50))
    rate = learning_rate_of(config)
    self.assertEqual(rate(warmup), np.float32(_PEAK))
    self.assertEqual(rate(steps), 0.0)
    self.assertLess(rate(warmup - 1), _PEAK)
    self.assertLess(rate(warmup + 1), _PEAK)

  @parameterized.parameters(
    # Stock, when both are set: the decay is from step 0.
    (1000, 100, {"decay_steps": 2000}, {100: 0.95, 1000: 0.5}),
    (10, 100, {}, {10: 0.1}),  # A trial may end within the warm-up.
    (1000, None, {}, {0: 1.0, 500: 0.5, 1000: 0.0}),
  )
  def test_what_is_set_stays(self, steps, warmup, decay, expected):
    warm_up = {"polynomial": {"warmup_steps": warmup}}
    if warmup is None:
      warm_up = {"type": None}
    optimization = {"warmup": warm_up, "learning_rate": {"polynomial": decay}}
    config = config_of(train_steps=steps, optimizer_config=optimization)
    rate = learning_rate_of(config)
    for step, part in expected.items():
      self.assertAllClose(rate(step), _PEAK * part)


class AdamWTest(tf.test.TestCase):
  def test_hyperparameters_are_the_papers(self):
    config = optimizer_of(config_of()).get_config()
    self.assertEqual(config["name"], "AdamWeightDecay")
    self.assertEqual(config["beta_1"], 0.9)
    self.assertEqual(config["beta_2"], 0.999)
    self.assertEqual(config["weight_decay_rate"], 0.01)

  def test_all_matrices_decay_and_nothing_else(self):
    config = tiny.config_of(tiny.overrides("unused"))
    model = task_factory.get_task(config.task).build_model()
    optimizer = optimizer_of(config)
    for variable in model.trainable_variables:
      kind = variable.name.split("/")[-1].split(":")[0]
      self.assertEqual(
        optimizer._do_use_weight_decay(variable.name),
        kind in ("kernel", "embeddings"),
        variable.name,
      )
