"""Micro-batches against the whole batch: weights, slots, logs and metrics."""

import functools
import pathlib
import tempfile

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.core import exp_factory
from swe_tf import errors
from swe_tf.training import micro_batches
from swe_tf.training import resume
from tests import tiny
from tests.sharing import toy
from tests.studies.finetune import samples
from tests.training import runs

_TAU, _STEPS = 2, 4
# Adam divides by |g| + epsilon; see `toy`.
_ADAMW = {
  "type": "adamw",
  "adamw": {"epsilon": 1e-3, "gradient_clip_norm": 0.1},
}
_LAMB = {"type": "lamb", "lamb": {"epsilon": 1e-3}}
_NEW_ADAM = {
  "type": "adam_experimental",
  "adam_experimental": {"epsilon": 1e-3, "global_clipnorm": 0.1},
}
_EMA = {"trainer": {"optimizer_config": {"ema": {"average_decay": 0.9}}}}
_FLOAT16 = {
  "runtime": {"mixed_precision_dtype": "float16", "loss_scale": 512.0}
}
# Has heads for both losses, which are means over different things.
_NEXT_SENTENCE = {
  "task": {
    "model": {
      "cls_heads": [{"inner_dim": 8, "num_classes": 2, "name": "next_sentence"}]
    },
    "train_data": {"use_next_sentence_label": True},
  }
}


def _growing(method, *fractions):
  growth = {"method": method, "fractions": list(fractions)}
  return {"sharing": {"mode": "none"}, "growth": growth}


_METHODS = {
  "none": {"sharing": {"mode": "none"}},
  "equal_init": {"sharing": {"mode": "equal_init"}},
  "reparameterize": {"sharing": {"mode": "reparameterize"}},
  "loops": {"sharing": {"loops": [{"loops": 1}]}},
  "adaptive": {
    "sharing": {
      "rule": "adaptive",
      "check_interval": 1,
      "rho": 0.99,
      "patience": 2,
    }
  },
  "net2net": _growing("net2net", 0.5),
  "stacking": _growing("stacking", 0.25, 0.5),
}


def _override(optimizer=_ADAMW, unit_size=1, num_layers=None):
  num_layers = num_layers or 2 * unit_size
  return {
    "task": {
      "model": {"encoder": {"any": {"num_layers": num_layers}}},
      "sharing": {"unit_size": unit_size, "untie_step": _TAU},
    },
    "trainer": {
      "train_steps": _STEPS,
      "steps_per_loop": 1,
      "summary_interval": 1,
      "optimizer_config": {"optimizer": optimizer},
    },
  }


def _difference(ours, theirs) -> float:
  """Returns the largest difference, relative to the weights or that slot.

  Not to the tensor: no loss depends on the bias of an attention's keys, so its
  gradient is rounding and nothing else.
  """
  assert ours.keys() == theirs.keys()
  largest: dict[str, float] = {}
  for key, value in theirs.items():
    kind = key.partition(" ")[2]
    largest[kind] = max(largest.get(kind, 0.0), np.max(np.abs(value)))
  return max(
    np.max(np.abs(ours[key] - value)) / largest[key.partition(" ")[2]]
    for key, value in theirs.items()
  )


def _train(config, strategy):
  """Returns the state after all steps, and the logs of each."""
  with tempfile.TemporaryDirectory() as directory:
    runner = tiny.make_runner(config, directory, strategy=strategy)
    for layer in runner.trainer.model.submodules:
      if isinstance(layer, tf_keras.layers.Dropout):
        layer.rate = 0.0  # No config reaches that of Model Garden's heads.
    with strategy.scope():
      logs = [runner.trainer.train(tf.constant(1)) for _ in range(_STEPS)]
  return tiny.final_state(runner.trainer), logs


class MicroBatchesTest(runs.RunsTestCase):
  real_predictions = (3, 0, 0, 1, 2)

  def _assert_equals_whole_batch(
    self, make_config, count, *, replicas=1, tolerance=1e-5
  ):
    """Trains with micro-batches and without."""
    strategy = toy.strategy_of(replicas)
    (ours, our_logs), (whole, logs) = (
      _train(make_config({"task": {"micro_batches": n}}), strategy)
      for n in (count, 1)
    )
    self.assertLess(_difference(ours, whole), tolerance)
    for mine, theirs in zip(our_logs, logs, strict=True):
      self.assertEqual(mine.keys(), theirs.keys())
      for name in theirs:
        if name != "sharing/gradient_cosine":  # Of each micro-batch.
          self.assertAllClose(
            mine[name], theirs[name], 100 * tolerance, tolerance, msg=name
          )

  def _check(self, *overrides, **kwargs):
    make_config = functools.partial(tiny.config_of, self.base, *overrides)
    self._assert_equals_whole_batch(make_config, **kwargs)

  def test_shared_then_unshared(self):
    self._check(_override(_ADAMW, unit_size=1), count=4)

  @parameterized.named_parameters(
    ("lamb_in_units_of_two", _LAMB, 2, 1, 2),
    ("two_replicas", _ADAMW, 1, 2, 2),
    ("two_replicas_in_units_of_two", _ADAMW, 2, 2, 4),
    ("lamb_on_two_replicas", _LAMB, 1, 2, 4),
    ("new_optimizer", _NEW_ADAM, 1, 1, 2),
  )
  @pytest.mark.slow
  def test_shared_then_unshared_too(
    self, optimizer, unit_size, replicas, count
  ):
    self._check(_override(optimizer, unit_size), count=count, replicas=replicas)

  @parameterized.named_parameters(
    (name, {"task": task}) for name, task in _METHODS.items()
  )
  @pytest.mark.slow
  def test_every_method(self, override):
    self._check(_override(num_layers=4), override, count=2)

  @pytest.mark.slow
  def test_loss_scaling_and_averages(self):
    # A gradient in float16 is rounded before it is added up.
    self._check(_override(), _EMA, _FLOAT16, count=2, tolerance=1e-2)

  @pytest.mark.slow
  def test_two_losses(self):
    self._check(_override(), _NEXT_SENTENCE, count=4)

  def _check_fine_tuning(self, experiment, name):
    data_dir = samples.write_data(
      name,
      pathlib.Path(self.create_tempdir().full_path),
      real=False,
      max_seq_length=64,
    )
    encoder = self.base["task"]["model"]["encoder"]["any"]
    encoder = encoder | {"max_position_embeddings": 64, "vocab_size": 200}

    def make_config(override):
      config = exp_factory.get_exp_config(experiment)
      config.override(
        {
          "task": {
            "data_dir": data_dir,
            "model": {"encoder": {"any": encoder}},
            "train_data": {"global_batch_size": 8},
          },
          "trainer": {
            "train_steps": _STEPS,
            "steps_per_loop": 1,
            "optimizer_config": {
              "optimizer": _ADAMW,
              "learning_rate": {"polynomial": {"initial_learning_rate": 0.01}},
            },
          },
        }
      )
      config.override(override)
      config.validate()
      return config

    self._assert_equals_whole_batch(make_config, 4)

  def test_glue(self):
    # The words have a gradient by rows, whose norm depends on equal rows.
    self._check_fine_tuning("swe/glue", "SST-2")

  @pytest.mark.slow
  def test_squad(self):
    self._check_fine_tuning("swe/squad", "squad_v1.1")

  def test_a_batch_that_cannot_be_cut(self):
    def config_of(count, replicas=1):
      runtime = {"num_gpus": replicas} if replicas > 1 else {}
      return tiny.config_of(
        self.base, {"task": {"micro_batches": count}, "runtime": runtime}
      )

    config = config_of(8)
    for arguments, message in (
      ((0,), r"micro_batches \(0\) must be"),
      ((1.5,), r"micro_batches \(1.5\) must be"),
      ((3,), r"\(8\) cannot .*micro_batches \(3\) .* 1 replica"),
      ((4, 4), r"\(8\) cannot .* 4 replica.* multiple of 16"),
    ):
      with self.assertRaisesRegex(errors.UsageError, message):
        config_of(*arguments)
    # As on a TPU, whose replicas no config tells.
    with self.assertRaisesRegex(errors.UsageError, "8.* 2 replica"):
      tiny.make_runner(
        config, self.create_tempdir().full_path, strategy=toy.strategy_of(2)
      )


class SumOverTest(tf.test.TestCase):
  def test_adds_up_in_a_loop_of_the_graph(self):
    table = tf.Variable(tf.random.normal([5, 3], seed=0))
    scale, unused = tf.Variable(2.0), tf.Variable(1.0)
    traced = []

    def gradients(index, part):
      traced.append(index)
      ids, weights = part["ids"], part["weights"]
      with tf.GradientTape() as tape:
        rows = tf.gather(table, ids)
        loss = scale * tf.reduce_sum(tf.square(rows) * weights[:, None])
      return tape.gradient(loss, [table, scale, unused]), {"loss": loss}

    batch = {
      "ids": tf.constant([1, 4, 1, 1, 0, 2]),
      "weights": tf.constant([1.0, 0.0, 2.0, 3.0, 0.5, 1.0]),
    }
    (rows, slope, nothing), terms = tf.function(
      lambda: micro_batches.sum_over(gradients, batch, 3), jit_compile=True
    )()
    self.assertLen(traced, 1)
    (whole_rows, whole_slope, _), whole = gradients(0, batch)
    self.assertIsNone(nothing)
    self.assertAllEqual(rows.indices, whole_rows.indices)
    self.assertAllClose(rows.values, whole_rows.values)
    self.assertAllEqual(rows.dense_shape, [5, 3])
    self.assertAllClose(slope, whole_slope)
    self.assertAllClose(terms["loss"], whole["loss"])

  def test_every_part_has_its_own_dropout(self):
    with resume.dropout_with_state():
      dropout = tf_keras.layers.Dropout(0.5)

    @tf.function
    def masks():
      return micro_batches.sum_over(
        lambda index, part: (
          tf.one_hot(index, 2)[:, None] * dropout(part, training=True)
        ),
        tf.ones([2, 64]),
        2,
      )

    first, second = masks()
    self.assertNotAllEqual(first, second)
    self.assertNotAllEqual(masks()[0], first)

  def test_without_a_static_batch_size(self):
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def total(x):
      return micro_batches.sum_over(
        lambda _, part: tf.reduce_sum(tf.square(part), axis=0), x, 2
      )

    batch = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    self.assertAllClose(total(batch), [10.0, 20.0])
    self.assertAllClose(total.python_function(batch), [10.0, 20.0])  # Eagerly.
    with self.assertRaises(tf.errors.InvalidArgumentError):
      total([[1.0, 2.0]] * 3)
