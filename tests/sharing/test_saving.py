"""`model.save` of tf_keras with a SharedWeightsOptimizer, in both phases."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import swe_tf
from swe_tf import errors

_LAYERS, _WIDTH, _TAU, _STEPS = 4, 3, 3, 6
_INPUTS = np.random.RandomState(0).normal(size=(8, _WIDTH)).astype("float32")
_TARGETS = np.sum(_INPUTS, axis=1, keepdims=True)


def _model() -> tf_keras.Model:
  tf_keras.utils.set_random_seed(1)
  inputs = x = tf_keras.Input([_WIDTH])
  blocks = [tf_keras.layers.Dense(_WIDTH, "tanh") for _ in range(_LAYERS)]
  for block in blocks:
    x = x + block(x)
  model = tf_keras.Model(inputs, tf_keras.layers.Dense(1)(x))
  plan = swe_tf.SharingPlan.from_layers(blocks, unit_size=2)
  inner = tf_keras.optimizers.AdamW(0.02, weight_decay=0.1)
  optimizer = swe_tf.SharedWeightsOptimizer(inner, plan, untie_step=_TAU)
  model.compile(optimizer, "mse")
  return model


def _fit(model, steps):
  data = tf.data.Dataset.from_tensors((_INPUTS, _TARGETS)).repeat(steps)
  model.fit(data, callbacks=[swe_tf.UntieCallback()], verbose=0)


def _state(model):
  return [v.numpy() for v in [*model.variables, *model.optimizer.variables]]


@pytest.mark.parametrize(
  "name", ["model.keras", "model.h5", "w.weights.h5", "weights", "checkpoint"]
)
@pytest.mark.parametrize("saved_after", [1, _TAU, 5])
def test_what_is_loaded_trains_on_bit_for_bit(tmp_path, name, saved_after):
  straight, model = _model(), _model()
  _fit(straight, _STEPS)
  _fit(model, saved_after)
  path = str(tmp_path / name)
  if name.startswith("model"):
    model.save(path)
    # Keras names layers anew: the plan must not go by their names alone.
    loaded = tf_keras.models.load_model(path)
  else:
    loaded = _model()
    loaded.optimizer.build(loaded.trainable_variables)
    if name == "checkpoint":
      saved = tf.train.Checkpoint(model).save(path)
      tf.train.Checkpoint(loaded).restore(saved).assert_consumed()
    else:
      model.save_weights(path)
      loaded.load_weights(path)
  optimizer = loaded.optimizer
  assert isinstance(optimizer, swe_tf.SharedWeightsOptimizer)
  is_shared = saved_after < _TAU
  assert optimizer.phase == ("shared" if is_shared else "unshared")
  assert str(optimizer.plan) == "2x2" and optimizer.untie_step == _TAU
  for ours, theirs in zip(_state(loaded), _state(model), strict=True):
    np.testing.assert_array_equal(ours, theirs)
  _fit(loaded, _STEPS - saved_after)
  for ours, theirs in zip(_state(loaded), _state(straight), strict=True):
    np.testing.assert_array_equal(ours, theirs)
  kernels = [v for v in loaded.trainable_variables if v.shape == (3, 3)]
  assert not np.array_equal(kernels[0], kernels[2])  # It did untie.


@pytest.mark.parametrize("saved_after", [1, 5])
def test_a_saved_model_keeps_weights_and_phase(tmp_path, saved_after):
  """Keras restores no state of any optimizer from this format."""
  model = _model()
  _fit(model, saved_after)
  model.save(tmp_path / "model")
  loaded = tf_keras.models.load_model(tmp_path / "model")
  assert loaded.optimizer.phase == model.optimizer.phase
  for ours, theirs in zip(loaded.weights, model.weights, strict=True):
    np.testing.assert_array_equal(ours, theirs)
  _fit(loaded, 1)
  kernels = [v for v in loaded.trainable_variables if v.shape == (3, 3)]
  assert np.array_equal(kernels[0], kernels[2]) == (saved_after == 1)


def test_what_cannot_be_saved_or_found_says_so(tmp_path):
  model = _model()
  config = model.optimizer.get_config()
  again = swe_tf.SharedWeightsOptimizer.from_config(config)
  with pytest.raises(errors.UsageError, match="optimizer.build"):
    again.plan  # noqa: B018
  other = tf_keras.Sequential([tf_keras.layers.Dense(1)])
  other.build([None, 2])
  with pytest.raises(errors.UsageError, match="is not among the 2 variables"):
    again.build(other.trainable_variables)
  legacy = swe_tf.SharedWeightsOptimizer(
    tf_keras.optimizers.legacy.Adam(), model.optimizer.plan, untie_step=_TAU
  )
  model.compile(legacy, "mse")
  with pytest.raises(NotImplementedError, match="slots of a legacy optimizer"):
    model.save(tmp_path / "model.keras")
