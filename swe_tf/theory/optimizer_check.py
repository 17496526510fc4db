"""The optimizer that trains BERT against Algorithm 1 in numpy.

Both models of section 3 as stacks of `tf_keras` layers, trained by
`swe_tf.SharedWeightsOptimizer` around SGD, weight by weight and step by step
beside `algorithm1`: while shared, across the untie step, and after. Not a test
of other optimizers or of replicas: those belong to the tests of
`swe_tf.sharing`.
"""

from collections.abc import Callable
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tf_keras

from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.theory import algorithm1
from swe_tf.theory import claims as claims_lib
from swe_tf.theory import deep_linear
from swe_tf.theory import experiment
from swe_tf.theory import figure2
from swe_tf.theory import regression

DEEP_LAYERS = 6
DEEP_SIZE = 3
DEEP_STEP_SIZE = 0.02
DEEP_STEPS = 300
DEEP_UNTIE_STEP = 100

# Float64 throughout; the two differ only in the order of their sums.
_ROUNDING = 1e-9


def _dense(count: int, size: int, initial: str) -> list[tf_keras.layers.Layer]:
  layers = [
    tf_keras.layers.Dense(
      size, use_bias=False, dtype=tf.float64, kernel_initializer=initial
    )
    for _ in range(count)
  ]
  for layer in layers:
    layer.build([None, size])
  return layers


def train(
  layers: Sequence[tf_keras.layers.Layer],
  loss: Callable[[], tf.Tensor],
  *,
  step_size: float,
  num_steps: int,
  untie_step: int,
) -> np.ndarray:
  """Trains Dense layers by sharing, then unsharing.

  Args:
    layers: the repeated layers, with equal kernels and no bias.
    loss: returns the loss of the layers as they are.
    step_size: of gradient descent.
    num_steps: T.
    untie_step: tau.

  Returns:
    The kernels before the first and after each step: [T + 1, L, ...].
  """
  kernels = [layer.kernel for layer in layers]
  optimizer = optimizer_lib.SharedWeightsOptimizer(
    tf_keras.optimizers.SGD(step_size),
    plan_lib.SharingPlan.from_layers(layers, unit_size=1),
    untie_step=untie_step,
  )
  optimizer.build(kernels)

  def step():
    with tf.GradientTape() as tape:
      value = loss()
    optimizer.apply_gradients(zip(tape.gradient(value, kernels), kernels))
    return tf.stack(kernels)

  history = [tf.stack(kernels)]
  # A compiled step is of one phase: compile one for each.
  shared_step, unshared_step = (
    tf.function(step, autograph=False) for _ in range(2)
  )
  for _ in range(untie_step):
    history.append(shared_step())
  optimizer.untie()
  for _ in range(num_steps - untie_step):
    history.append(unshared_step())
  return np.array(history)


def _as_kept(step_size: float) -> float:
  """The step size as TF-Keras keeps it, in single precision."""
  return float(np.float32(step_size))


def regression_gap(options: experiment.Options) -> float:
  """Figure 2 with one scalar layer a coordinate: largest weight difference."""
  problem = regression.Problem.draw(
    np.random.default_rng([options.seed, 1]),
    seeds=1,
    num_layers=figure2.NUM_LAYERS,
    num_samples=figure2.NUM_SAMPLES,
  )
  step_size = _as_kept(figure2.STEP_SIZE * options.step_scale)
  schedule = {"num_steps": figure2.NUM_STEPS, "untie_step": figure2.UNTIE_STEP}
  covariance = problem.covariance()
  expected = np.array(
    list(
      algorithm1.iterates(
        np.zeros_like(problem.weights),
        lambda w: regression.gradient(covariance, w - problem.weights),
        step_size=step_size,
        layer_axis=-1,
        aggregate=options.aggregate,
        **schedule,
      )
    )
  )

  inputs = tf.constant(problem.inputs[0])
  outputs = tf.linalg.matvec(inputs, problem.weights[0])
  coordinates = tf.split(inputs, figure2.NUM_LAYERS, axis=1)
  layers = _dense(figure2.NUM_LAYERS, 1, "zeros")

  def loss():
    answers = [layer(x) for layer, x in zip(layers, coordinates)]
    return tf.reduce_mean((tf.add_n(answers)[:, 0] - outputs) ** 2) / 2

  measured = train(layers, loss, step_size=step_size, **schedule)
  return np.max(np.abs(measured[:, :, 0, 0] - expected[:, 0]))


def deep_linear_gap(options: experiment.Options) -> float:
  """A deep linear network from identity: largest weight difference."""
  target = np.eye(DEEP_SIZE) + 0.3 * np.random.default_rng(
    [options.seed, 7]
  ).standard_normal((DEEP_SIZE, DEEP_SIZE))
  step_size = _as_kept(DEEP_STEP_SIZE * options.step_scale)
  schedule = {"num_steps": DEEP_STEPS, "untie_step": DEEP_UNTIE_STEP}
  expected = np.array(
    list(
      algorithm1.iterates(
        deep_linear.identity(target, DEEP_LAYERS),
        lambda w: deep_linear.gradient(w, target),
        step_size=step_size,
        layer_axis=deep_linear.LAYER_AXIS,
        aggregate=options.aggregate,
        **schedule,
      )
    )
  )

  layers = _dense(DEEP_LAYERS, DEEP_SIZE, "identity")

  def loss():
    # Dense layers multiply from the right, so this is the transpose.
    rows = tf.eye(DEEP_SIZE, dtype=tf.float64)
    for layer in layers:
      rows = layer(rows)
    return tf.reduce_sum((rows - target.T) ** 2) / 2

  measured = train(layers, loss, step_size=step_size, **schedule)
  return np.max(np.abs(deep_linear.transpose(measured) - expected))


def run(options: experiment.Options) -> experiment.Outcome:
  """Compares both models over their whole training."""
  text = (
    "the optimizer that trains BERT = Algorithm 1 in numpy, {}: largest "
    "weight difference over all steps"
  )
  return experiment.Outcome(
    [
      claims_lib.at_most(
        claims_lib.DERIVED,
        "Algorithm 1",
        text.format(name),
        _ROUNDING,
        gap(options),
      )
      for name, gap in (
        ("linear regression (L = 200)", regression_gap),
        ("deep linear network", deep_linear_gap),
      )
    ]
  )
