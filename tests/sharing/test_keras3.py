"""Keras 3 against the literal Algorithm 1, on the backend of this process.

That is TensorFlow; `test_on_jax` runs this file once more in a process with the
JAX backend and two virtual devices, since Keras has one backend a process.
"""

import dataclasses
import importlib.util
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import pytest

import swe_tf
from swe_tf import errors
from swe_tf.sharing import keras3

BACKEND = keras.config.backend()
NUM_LAYERS, WIDTH, STEPS, TAU = 4, 3, 5, 3
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_ON_JAX = pytest.mark.skipif(BACKEND != "jax", reason="for the JAX backend")
_ON_TF = pytest.mark.skipif(BACKEND != "tensorflow", reason="for TensorFlow")

_adam, _sgd = keras.optimizers.Adam, keras.optimizers.SGD
# Adam divides by |g| + epsilon: with its default of 1e-7, a gradient that is
# almost zero turns the last bit of a float32 into a visible difference.
_EPSILON = 1e-3


def _adamw():
  optimizer = keras.optimizers.AdamW(0.02, weight_decay=0.1, epsilon=_EPSILON)
  optimizer.exclude_from_weight_decay(var_names=["bias"])
  return optimizer


def _schedule():
  decay = keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5)
  return _adam(decay, epsilon=_EPSILON)


def _adam_with(**kwargs):
  return lambda: _adam(0.02, epsilon=_EPSILON, **kwargs)


OPTIMIZERS = {
  "sgd": lambda: _sgd(0.05),
  "momentum": lambda: _sgd(0.02, momentum=0.9, weight_decay=0.1),
  "adam": _adam_with(),
  "adamw": _adamw,
  "lion": lambda: keras.optimizers.Lion(0.01),
  "adafactor": lambda: keras.optimizers.Adafactor(0.02),
  "lamb": lambda: keras.optimizers.Lamb(0.02, epsilon=_EPSILON),
  "clipnorm": _adam_with(clipnorm=0.1),
  "clipvalue": _adam_with(clipvalue=0.05),
  "global_clipnorm": _adam_with(global_clipnorm=0.3),
  "ema": _adam_with(use_ema=True, ema_momentum=0.7),
  "ema_overwrite": _adam_with(
    use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=2
  ),
  "accumulation": _adam_with(
    gradient_accumulation_steps=2, global_clipnorm=0.3
  ),
  "schedule": _schedule,
}


class _Residual(keras.layers.Layer):
  """The layers of a block have automatic names, as those of most models."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    bias = keras.initializers.RandomUniform(0.2, 0.8)
    self._dense = keras.layers.Dense(
      WIDTH, activation="tanh", bias_initializer=bias
    )

  def build(self, shape):
    self._dense.build(shape)
    self.built = True

  def call(self, x):
    return x + self._dense(x)


def _stack():
  """Returns a model and its blocks."""
  keras.utils.set_random_seed(0)
  inputs = keras.Input([WIDTH])
  x = keras.layers.Dense(WIDTH)(inputs)
  blocks = [_Residual() for _ in range(NUM_LAYERS)]
  for block in blocks:
    x = block(x)
  return keras.Model(inputs, keras.layers.Dense(1)(x)), blocks


def _data(batches=STEPS):
  rng = np.random.default_rng(0)
  x = rng.normal(size=(8 * batches, WIDTH)).astype("float32")
  return x, rng.normal(size=(8 * batches, 1)).astype("float32")


@dataclasses.dataclass
class _State:
  weights: list[np.ndarray]
  slots: list[np.ndarray]


def _state(model, optimizer) -> _State:
  return _State(
    [np.array(v) for v in model.trainable_variables],
    [np.array(v) for v in optimizer.variables],
  )


def _difference(ours: _State, theirs: _State) -> float:
  """Largest difference of any weight or slot, relative to its tensor."""
  assert len(ours.weights) == len(theirs.weights)
  assert len(ours.slots) == len(theirs.slots)
  pairs = zip(ours.weights + ours.slots, theirs.weights + theirs.slots)
  return max(
    np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-12) for a, b in pairs
  )


def _gradients(model, x, y):
  if BACKEND == "tensorflow":
    import tensorflow as tf

    with tf.GradientTape() as tape:
      loss = tf.reduce_mean(tf.square(model(x) - y))
    return tape.gradient(loss, [v.value for v in model.trainable_variables])
  import jax

  def loss_of(trainable):
    y_pred, _ = model.stateless_call(trainable, [], x)
    return jax.numpy.mean((y_pred - y) ** 2)

  return jax.grad(loss_of)([v.value for v in model.trainable_variables])


def _run_algorithm_1(make_optimizer, unit_size=1, tau=TAU) -> list[_State]:
  """The oracle, eagerly: the state after each batch, and after the last."""
  model, blocks = _stack()
  variables = model.trainable_variables
  layers = [block.trainable_variables for block in blocks]
  ties = [
    [next(i for i, w in enumerate(variables) if w is v) for v in tie]
    for first in range(unit_size)
    for tie in zip(*layers[first::unit_size])
  ]
  for stem, *branches in ties:
    for branch in branches:
      variables[branch].assign(np.array(variables[stem]))
  optimizer = make_optimizer()
  per_update = optimizer.gradient_accumulation_steps or 1
  x, y = _data(STEPS * per_update)
  states = []
  for i in range(STEPS * per_update):
    rows = slice(8 * i, 8 * i + 8)
    grads = [np.array(g) for g in _gradients(model, x[rows], y[rows])]
    if i < tau * per_update:
      for tie in ties:
        mean = np.mean([grads[i] for i in tie], axis=0)
        for place in tie:
          grads[place] = mean
    optimizer.apply([keras.ops.convert_to_tensor(g) for g in grads], variables)
    states.append(_state(model, optimizer))
  optimizer.finalize_variable_values(variables)
  return [*states, _state(model, optimizer)]


class _Watch(keras.callbacks.Callback):
  """Notes the state after each batch, and whether all ties are equal."""

  def __init__(self):
    super().__init__()
    self.states, self.is_tied, self.phases = [], [], []

  def on_train_batch_end(self, batch, logs=None):
    del batch, logs
    model = self.model  # Takes the state out of `fit` on JAX.
    optimizer = keras3.find(model.optimizer)
    self.phases.append(optimizer.phase)
    self.states.append(_state(model, optimizer.inner_optimizer))
    self.is_tied.append(
      all(
        np.array_equal(np.array(stem), np.array(branch))
        for stem, *branches in optimizer.plan.ties
        for branch in branches
      )
    )


def _compiled(inner, unit_size=1, untie_step=TAU, wrap=None, **kwargs):
  model, blocks = _stack()
  plan = swe_tf.SharingPlan.from_layers(blocks, unit_size)
  optimizer = swe_tf.SharedWeightsOptimizer(inner, plan, untie_step=untie_step)
  model.compile(wrap(optimizer) if wrap else optimizer, loss="mse", **kwargs)
  return model


def _fit(model, *callbacks, batches=slice(None)):
  optimizer = keras3.find(model.optimizer)
  x, y = _data(STEPS * (optimizer.gradient_accumulation_steps or 1))
  rows = slice(8 * (batches.start or 0), 8 * (batches.stop or len(x)))
  settings = dict(batch_size=8, shuffle=False, verbose=0)
  model.fit(x[rows], y[rows], callbacks=list(callbacks), **settings)
  return _state(model, optimizer.inner_optimizer)


@pytest.mark.parametrize(
  ("name", "unit_size", "wrap"),
  [
    *((name, 1, None) for name in OPTIMIZERS),
    ("adamw", 2, None),
    ("global_clipnorm", 4, None),
    # Its scale is a power of 2, which changes no bit: the oracle needs none.
    ("global_clipnorm", 1, keras.optimizers.LossScaleOptimizer),
  ],
)
def test_equals_algorithm_1(name, unit_size, wrap):
  watch, oracle = _Watch(), _run_algorithm_1(OPTIMIZERS[name], unit_size)
  model = _compiled(OPTIMIZERS[name](), unit_size, wrap=wrap)
  optimizer = keras3.find(model.optimizer)
  assert isinstance(optimizer, keras.optimizers.Optimizer)
  assert str(optimizer.plan) == f"{unit_size}x{NUM_LAYERS // unit_size}"
  watch.states.append(_fit(model, swe_tf.UntieCallback(), watch))
  apart = [_difference(a, b) for a, b in zip(watch.states, oracle, strict=True)]
  print(f"\n{BACKEND} {name} {unit_size}: {max(apart):.1e}")
  assert max(apart) <= 1e-5
  shared = len(watch.is_tied) * TAU // STEPS
  assert all(watch.is_tied[:shared])
  assert unit_size == NUM_LAYERS or not any(watch.is_tied[shared + 1 :])
  assert watch.phases[shared - 2 :] == ["shared"] + ["unshared"] * (
    len(watch.phases) - shared + 1
  )
  assert optimizer.untied_at == TAU
  assert optimizer.compiled_phase == "unshared"


@pytest.mark.parametrize("callback", [False, True])
@pytest.mark.parametrize("per_execution", [1, 2])
def test_unties_by_itself(callback, per_execution):
  oracle = _run_algorithm_1(OPTIMIZERS["adamw"])
  model = _compiled(_adamw(), steps_per_execution=per_execution)
  ours = _fit(model, *([swe_tf.UntieCallback()] if callback else []))
  assert _difference(ours, oracle[-1]) <= 1e-5
  assert model.optimizer.phase == "unshared"


def test_a_step_compiled_before_untie_stops_sharing():
  oracle = _run_algorithm_1(OPTIMIZERS["adam"])
  model = _compiled(OPTIMIZERS["adam"](), untie_step=None)
  x, y = _data()
  for i in range(STEPS):
    if i == TAU:
      program = model.train_function
      model.optimizer.untie()
    model.train_on_batch(x[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8])
  assert model.train_function is program
  assert model.optimizer.untied_at == TAU
  ours = _state(model, model.optimizer.inner_optimizer)
  assert _difference(ours, oracle[-1]) <= 1e-5


def test_unshared_step_is_the_bare_one():
  def program(optimizer):
    model, _ = _stack()
    optimizer = optimizer(model)
    variables = model.trainable_variables
    optimizer.build(variables)
    if BACKEND == "jax":
      import jax

      values = [v.value for v in variables]
      slots = [v.value for v in optimizer.variables]
      jaxpr = jax.make_jaxpr(optimizer.stateless_apply)(slots, values, values)
      return [str(eqn.primitive) for eqn in jaxpr.eqns]
    import tensorflow as tf

    @tf.function
    def step(*grads):
      optimizer.apply(grads, variables)

    specs = [tf.TensorSpec(v.shape, v.dtype) for v in variables]
    graph = step.get_concrete_function(*specs).graph
    return sorted(op.type for op in graph.get_operations())

  def shared(model, untie_step=0):
    plan = swe_tf.SharingPlan.from_layers(model.layers[2:-1])
    return swe_tf.SharedWeightsOptimizer(_adamw(), plan, untie_step)

  bare = program(lambda model: _adamw())
  assert program(shared) == bare
  assert program(lambda model: shared(model, TAU)) != bare


@pytest.mark.parametrize(
  "jit", [pytest.param(False, marks=pytest.mark.slow), True]
)
@pytest.mark.parametrize("saved_at", [TAU - 1, TAU + 1])
@pytest.mark.parametrize("file", ["model.keras", "w.weights.h5", "checkpoint"])
def test_a_saved_run_goes_on(saved_at, file, jit, tmp_path):
  # Keras does not save what is excluded from weight decay.
  make = _adam_with(weight_decay=0.1, global_clipnorm=0.3)
  # Blocks 8 to 11 in one model, 12 to 15 in the other: TensorFlow orders a
  # chain of additions by name, where 10 comes before 8.
  keras.backend.clear_session()
  _ = [_Residual() for _ in range(8)]
  straight = _compiled(make(), jit_compile=jit)
  _fit(straight, swe_tf.UntieCallback(), batches=slice(saved_at))
  path = str(tmp_path / file)
  if file == "model.keras":
    straight.save(path)
    objects = {"_Residual": _Residual}
    resumed = keras.saving.load_model(path, custom_objects=objects)
  else:
    resumed = _compiled(make(), jit_compile=jit)
    resumed.optimizer.build(resumed.trainable_variables)
  if file == "w.weights.h5":
    straight.save_weights(path)
    resumed.load_weights(path)
  elif file == "checkpoint":
    if BACKEND != "tensorflow":
      pytest.skip("TensorFlow's checkpoints are for its variables.")
    import tensorflow as tf

    saved = tf.train.Checkpoint(straight).save(path)
    tf.train.Checkpoint(resumed).restore(saved).assert_consumed()
  assert resumed.optimizer.phase == straight.optimizer.phase
  assert str(resumed.optimizer.plan) == "1x4"
  rest = slice(saved_at, STEPS)
  theirs = _fit(straight, swe_tf.UntieCallback(), batches=rest)
  ours = _fit(resumed, swe_tf.UntieCallback(), batches=rest)
  assert _difference(ours, theirs) == 0.0


def test_an_earlier_state_shares_again(tmp_path):
  model = _compiled(_adamw())
  _fit(model, swe_tf.UntieCallback(), batches=slice(2))
  model.save_weights(tmp_path / "w.weights.h5")
  rest = slice(2, STEPS)
  first = _fit(model, swe_tf.UntieCallback(), batches=rest)
  model.load_weights(tmp_path / "w.weights.h5")
  assert model.optimizer.phase == "shared"
  again = _fit(model, swe_tf.UntieCallback(), batches=rest)
  assert _difference(again, first) == 0.0


def test_config_before_and_after_building():
  model = _compiled(_adamw())
  config = model.optimizer.get_config()
  again = keras3.SharedWeightsOptimizer.from_config(config)
  with pytest.raises(errors.UsageError, match="call optimizer.build"):
    _ = again.plan
  other = keras.Sequential([keras.Input([3]), keras.layers.Dense(2)])
  lost = keras3.SharedWeightsOptimizer.from_config(config)
  with pytest.raises(errors.UsageError, match="saved plan ties .*kernel"):
    lost.build(other.trainable_variables)
  with pytest.raises(errors.UsageError, match="HDF5.*`.keras`"):
    lost.build([])  # As Keras does when it loads a `.h5`.


def test_settings_are_those_of_the_inner_optimizer():
  model = _compiled(_adam(0.01, clipnorm=0.5))
  optimizer, inner = model.optimizer, model.optimizer.inner_optimizer
  assert optimizer.clipnorm == 0.5 and optimizer.beta_1 == 0.9
  optimizer.clipnorm, optimizer.beta_1 = 0.25, 0.8
  assert inner.clipnorm == 0.25 and inner.beta_1 == 0.8
  halve = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
  _fit(model, halve)
  assert float(inner.learning_rate) == pytest.approx(0.005)
  assert int(np.array(optimizer.iterations)) == STEPS


def test_bad_input():
  model, blocks = _stack()
  make = swe_tf.SharingPlan.from_layers
  wrap = swe_tf.SharedWeightsOptimizer
  plan, loss_scale = make(blocks), keras.optimizers.LossScaleOptimizer
  for error, message, call in [
    (errors.UsageError, "more than once", lambda: make([blocks[0]] * 2)),
    (
      errors.UsageError,
      "not alike",
      lambda: make([blocks[0], model.layers[-1]]),
    ),
    (TypeError, "plan must be a SharingPlan", lambda: wrap(_sgd(), blocks)),
    (errors.UsageError, "2.5", lambda: wrap(_sgd(), plan, untie_step=2.5)),
    (errors.UsageError, "-1", lambda: wrap(_sgd(), plan, untie_step=-1)),
    (errors.UsageError, "True", lambda: wrap(_sgd(), plan, untie_step=True)),
    (TypeError, "wrap .* once", lambda: wrap(wrap(_sgd(), plan), plan)),
    (TypeError, "other way", lambda: wrap(loss_scale(_sgd()), plan)),
    (TypeError, "same Keras", lambda: wrap("sgd", plan)),
    (TypeError, "loops", lambda: wrap(_sgd(), plan, loops=3)),
  ]:
    with pytest.raises(error, match=message):
      call()
  other = _compiled(_sgd())
  with pytest.raises(errors.UsageError, match="another model"):
    wrap(_sgd(), plan).build(other.trainable_variables)
  blocks[1].trainable = False
  with pytest.raises(errors.UsageError, match="frozen"):
    wrap(_sgd(), plan).build(model.trainable_variables)
  other.compile("sgd", loss="mse")
  with pytest.raises(errors.UsageError, match="got SGD"):
    other.fit(*_data(), verbose=0, callbacks=[swe_tf.UntieCallback()])
  never = _compiled(_sgd(), untie_step=None)
  with pytest.raises(errors.UsageError, match="needs an untie_step"):
    _fit(never, swe_tf.UntieCallback())


def test_an_optimizer_that_splits_a_tie_is_refused():
  model, blocks = _stack()
  plan = swe_tf.SharingPlan.from_layers(blocks)
  kernel = blocks[1].trainable_variables[0]

  def build(inner, untie_step=TAU):
    if not isinstance(inner, keras.optimizers.Muon):
      inner.exclude_from_weight_decay(var_list=[kernel])
    optimizer = swe_tf.SharedWeightsOptimizer(inner, plan, untie_step)
    optimizer.build(model.trainable_variables)

  muon = keras.optimizers.Muon(0.1, exclude_layers=[kernel.path])
  for inner in (keras.optimizers.AdamW(0.1), muon):
    with pytest.raises(errors.UsageError, match="could not stay equal"):
      build(inner)
  build(_sgd(0.1))  # It decays nothing.
  build(keras.optimizers.AdamW(0.1), untie_step=0)


@_ON_TF
def test_the_two_keras_do_not_mix():
  import tf_keras

  _, blocks = _stack()
  old = [tf_keras.layers.Dense(3) for _ in range(2)]
  for layer in old:
    layer.build([None, 3])
  make = swe_tf.SharingPlan.from_layers
  with pytest.raises(TypeError, match="one Keras only"):
    make([blocks[0], old[0]])
  with pytest.raises(TypeError, match="same Keras"):
    swe_tf.SharedWeightsOptimizer(_sgd(), make(old))
  with pytest.raises(TypeError, match="same Keras"):
    swe_tf.SharedWeightsOptimizer(tf_keras.optimizers.SGD(), make(blocks))


@_ON_TF
def test_two_replicas():
  import tensorflow as tf

  oracle = _run_algorithm_1(OPTIMIZERS["adamw"])
  strategy = tf.distribute.MirroredStrategy(
    ["/cpu:0", "/cpu:1"],
    # Collectives of a second strategy would break those of other tests.
    cross_device_ops=tf.distribute.ReductionToOneDevice(),
  )
  with strategy.scope():
    # XLA has no collectives for logical CPU devices.
    model = _compiled(_adamw(), jit_compile=False)
  ours = _fit(model, swe_tf.UntieCallback())
  assert _difference(ours, oracle[-1]) <= 1e-5


@_ON_JAX
def test_data_parallel():
  oracle = _run_algorithm_1(OPTIMIZERS["global_clipnorm"])
  devices = keras.distribution.list_devices("cpu")
  assert len(devices) == 2
  with keras.distribution.DataParallel(devices=devices).scope():
    model = _compiled(OPTIMIZERS["global_clipnorm"](), jit_compile=True)
    ours = _fit(model, swe_tf.UntieCallback())
  kernel = model.trainable_variables[0].value
  assert len(kernel.sharding.device_set) == 2
  assert _difference(ours, oracle[-1]) <= 1e-5


def _run(code, **env):
  command = [sys.executable, "-c", code]
  subprocess.run(command, check=True, cwd=_ROOT, env={**os.environ, **env})


def test_neither_keras_is_imported_before_it_is_asked_for():
  check = (
    "import sys, swe_tf\nassert not {'keras', 'tf_keras'} & {*sys.modules}"
  )
  _run(check)
  # On TensorFlow, the names take either Keras, whichever was imported first.
  _run(
    "import keras\n"
    "from swe_tf import SharedWeightsOptimizer, SharingPlan, UntieCallback\n"
    "import tf_keras, numpy as np\n"
    "for kit in (tf_keras, keras):\n"
    "  layers = [kit.layers.Dense(4) for _ in range(3)]\n"
    "  model = kit.Sequential([kit.layers.Input([4]), *layers])\n"
    "  plan = SharingPlan.from_layers(layers)\n"
    "  inner = kit.optimizers.SGD(0.1)\n"
    "  optimizer = SharedWeightsOptimizer(inner, plan, untie_step=1)\n"
    "  assert isinstance(optimizer, kit.optimizers.Optimizer)\n"
    "  model.compile(optimizer, 'mse')\n"
    "  x = np.ones([8, 4])\n"
    "  model.fit(x, x, callbacks=[UntieCallback()], verbose=0)\n"
    "  assert optimizer.phase == 'unshared'",
    KERAS_BACKEND="tensorflow",
  )
  if importlib.util.find_spec("jax"):
    _run(
      "import keras, swe_tf, sys\n"
      "swe_tf.SharingPlan, swe_tf.UntieCallback\n"
      "swe_tf.SharedWeightsOptimizer\n"
      "assert 'tf_keras' not in sys.modules",
      KERAS_BACKEND="jax",
    )


@_ON_TF
@pytest.mark.slow
def test_on_jax():
  pytest.importorskip("jax", reason="pip install '.[keras3]'")
  flags = "--xla_force_host_platform_device_count=2"
  env = {**os.environ, "KERAS_BACKEND": "jax", "XLA_FLAGS": flags}
  command = [sys.executable, "-m", "pytest", "-rP", "-x", __file__]
  result = subprocess.run(
    command, env=env, cwd=_ROOT, text=True, capture_output=True
  )
  print(result.stdout[-20000:])
  assert result.returncode == 0, result.stderr[-2000:]
