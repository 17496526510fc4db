"""Micro-batches against the whole batch: weights, slots, logs and metrics."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from swe_tf import errors
from swe_tf.training import micro_batches
from swe_tf.training import resume
from tests import tiny
from tests.sharing import toy
from tests.studies.finetune import samples

_TAU, _STEPS = 2, 4


def _optimizer(kind, **fields):
  # Adam divides by |g| + epsilon; see `toy`.
  return {"optimizer": {"type": kind, kind: {"epsilon": 1e-3, **fields}}}


_ADAMW = _optimizer("adamw", gradient_clip_norm=0.1)
_LAMB = _optimizer("lamb")
_NEW_ADAM = _optimizer("adam_experimental", global_clipnorm=0.1)
_EMA = {"trainer": {"optimizer_config": {"ema": {"average_decay": 0.9}}}}
_FLOAT16 = {
  "runtime": {"mixed_precision_dtype": "float16", "loss_scale": 512.0}
}
_HEAD = {"inner_dim": 8, "num_classes": 2, "name": "next_sentence"}
# Has heads for both losses, which are means over different things.
_NEXT_SENTENCE = {
  "task": {
    "model": {"cls_heads": [_HEAD]},
    "train_data": {"use_next_sentence_label": True},
  }
}


def _override(optimizer=_ADAMW, unit_size=1, num_layers=None):
  sharing = {"unit_size": unit_size, "untie_step": _TAU}
  encoder = tiny.encoder(num_layers=num_layers or 2 * unit_size)
  trainer = tiny.every(1, train_steps=_STEPS) | {"optimizer_config": optimizer}
  return {"task": {**encoder, "sharing": sharing}, "trainer": trainer}


def _method(growth=None, *fractions, **sharing):
  """Returns the overrides of a method, for four layers."""
  grown = {"method": growth, "fractions": list(fractions)} if growth else {}
  task = {"sharing": sharing or {"mode": "none"}, "growth": grown}
  return [_override(num_layers=4), {"task": task}], 2


# Overrides, the number of micro-batches, of replicas, and the tolerance.
_CASES = {
  "adamw": ([_override()], 4),
  "lamb_in_units_of_two": ([_override(_LAMB, 2)], 2),
  "two_replicas": ([_override()], 2, 2),
  "two_replicas_in_units_of_two": ([_override(unit_size=2)], 4, 2),
  "lamb_on_two_replicas": ([_override(_LAMB)], 4, 2),
  "new_optimizer": ([_override(_NEW_ADAM)], 2),
  # A gradient in float16 is rounded before it is added up.
  "loss_scaling_and_averages": ([_override(), _EMA, _FLOAT16], 2, 1, 1e-2),
  "two_losses": ([_override(), _NEXT_SENTENCE], 4),
  "none": _method(),
  "equal_init": _method(mode="equal_init"),
  "reparameterize": _method(mode="reparameterize"),
  "loops": _method(loops=[{"loops": 1}]),
  "adaptive": _method(rule="adaptive", check_interval=1, rho=0.99, patience=2),
  "net2net": _method("net2net", 0.5),
  "stacking": _method("stacking", 0.25, 0.5),
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


def _train(config, directory, strategy):
  """Returns the state after all steps, and the logs of each."""
  trainer = tiny.make_runner(config, directory, strategy=strategy).trainer
  for layer in trainer.model.submodules:
    if isinstance(layer, tf_keras.layers.Dropout):
      layer.rate = 0.0  # No config reaches that of Model Garden's heads.
  with strategy.scope():
    logs = [trainer.train(tf.constant(1)) for _ in range(_STEPS)]
  return tiny.final_state(trainer), logs


@pytest.fixture(autouse=True)
def _in_float32():
  yield
  tf_keras.mixed_precision.set_global_policy("float32")


@pytest.fixture(scope="module", name="base")
def _base(tmp_path_factory):
  folder = tmp_path_factory.mktemp("records")
  return tiny.overrides(
    tiny.write_records(folder, real_predictions=(3, 0, 0, 1, 2))
  )


def _assert_equals_whole_batch(
  folder, layers, count, replicas=1, tolerance=1e-5, **experiment
):
  """Trains with micro-batches and without."""
  (ours, our_logs), (whole, logs) = (
    _train(
      tiny.config_of(*layers, {"task": {"micro_batches": n}}, **experiment),
      folder / str(n),
      toy.strategy_of(replicas),
    )
    for n in (count, 1)
  )
  assert _difference(ours, whole) < tolerance
  for mine, theirs in zip(our_logs, logs, strict=True):
    assert mine.keys() == theirs.keys()
    for name in theirs:
      if name != "sharing/gradient_cosine":  # Of each micro-batch.
        np.testing.assert_allclose(
          mine[name], theirs[name], 100 * tolerance, tolerance, err_msg=name
        )


@pytest.mark.parametrize(
  "name",
  ["adamw", *(pytest.param(n, marks=pytest.mark.slow) for n in [*_CASES][1:])],
)
def test_equals_the_whole_batch(name, base, tmp_path):
  layers, *how = _CASES[name]
  _assert_equals_whole_batch(tmp_path, [base, *layers], *how)


@pytest.mark.parametrize(
  "experiment, name",
  [
    # The words have a gradient by rows, whose norm depends on equal rows.
    ("swe/glue", "SST-2"),
    pytest.param("swe/squad", "squad_v1.1", marks=pytest.mark.slow),
  ],
)
def test_fine_tuning(experiment, name, base, tmp_path):
  data_dir = samples.write_data(name, tmp_path, max_seq_length=64)
  encoder = base["task"]["model"]["encoder"]["any"]
  sizes = {"max_position_embeddings": 64, "vocab_size": 200}
  task = tiny.encoder(**(encoder | sizes)) | {
    "data_dir": data_dir,
    "train_data": {"global_batch_size": 8},
  }
  rate = {"learning_rate": {"polynomial": {"initial_learning_rate": 0.01}}}
  trainer = {"train_steps": _STEPS, "steps_per_loop": 1}
  trainer["optimizer_config"] = _ADAMW | rate
  layers = [{"task": task, "trainer": trainer}]
  _assert_equals_whole_batch(tmp_path, layers, 4, experiment=experiment)


def test_a_batch_that_cannot_be_cut(base, tmp_path):
  def config_of(count, replicas=1):
    runtime = {"num_gpus": replicas} if replicas > 1 else {}
    return tiny.config_of(
      base, {"task": {"micro_batches": count}, "runtime": runtime}
    )

  for arguments, message in (
    ((0,), r"micro_batches \(0\) must be"),
    ((1.5,), r"micro_batches \(1.5\) must be"),
    ((3,), r"\(8\) cannot .*micro_batches \(3\) .* 1 replica"),
    ((4, 4), r"\(8\) cannot .* 4 replica.* multiple of 16"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      config_of(*arguments)
  # As on a TPU, whose replicas no config tells.
  with pytest.raises(errors.UsageError, match="8.* 2 replica"):
    tiny.make_runner(config_of(8), tmp_path, strategy=toy.strategy_of(2))


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
