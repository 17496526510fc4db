"""The optimization of section 5.1, and that it follows `train_steps`."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from official.core import exp_factory
from official.core import task_factory
from official.core import train_utils
from swe_tf import registry  # noqa: F401 (registers)

_PEAK = 3e-4


def config_of(**trainer):
  config = exp_factory.get_exp_config("swe/bert_pretraining")
  config.override({"trainer": trainer})
  config.validate()
  config.lock()
  return config


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

  def test_what_is_set_stays(self):
    config = config_of(
      train_steps=1000,
      optimizer_config={
        "warmup": {"polynomial": {"warmup_steps": 100}},
        "learning_rate": {"polynomial": {"decay_steps": 2000}},
      },
    )
    rate = learning_rate_of(config)
    self.assertAllClose(rate(100), _PEAK * 0.95)  # Stock: from step 0.
    self.assertAllClose(rate(1000), _PEAK / 2)

  def test_a_trial_may_end_within_the_warm_up(self):
    config = config_of(
      train_steps=10,
      optimizer_config={"warmup": {"polynomial": {"warmup_steps": 100}}},
    )
    self.assertAllClose(learning_rate_of(config)(10), _PEAK / 10)

  def test_without_warm_up_decay_takes_the_whole_run(self):
    config = config_of(
      train_steps=1000, optimizer_config={"warmup": {"type": None}}
    )
    rate = learning_rate_of(config)
    self.assertEqual(rate(0), np.float32(_PEAK))
    self.assertAllClose(rate(500), _PEAK / 2)
    self.assertEqual(rate(1000), 0.0)


class AdamWTest(tf.test.TestCase):
  def test_hyperparameters_are_the_papers(self):
    config = optimizer_of(config_of()).get_config()
    self.assertEqual(config["name"], "AdamWeightDecay")
    self.assertEqual(config["beta_1"], 0.9)
    self.assertEqual(config["beta_2"], 0.999)
    self.assertEqual(config["weight_decay_rate"], 0.01)

  def test_all_matrices_decay_and_nothing_else(self):
    config = exp_factory.get_exp_config("swe/bert_pretraining")
    config.task.model.encoder.any.override(
      dict(
        hidden_size=8,
        num_layers=1,
        num_attention_heads=2,
        vocab_size=20,
        intermediate_size=16,
        max_position_embeddings=6,
      )
    )
    for data in (config.task.train_data, config.task.validation_data):
      data.override({"seq_length": 6, "max_predictions_per_seq": 1})
    config.validate()
    model = task_factory.get_task(config.task).build_model()
    optimizer = optimizer_of(config)
    for variable in model.trainable_variables:
      kind = variable.name.split("/")[-1].split(":")[0]
      self.assertEqual(
        optimizer._do_use_weight_decay(variable.name),
        kind in ("kernel", "embeddings"),
        variable.name,
      )
