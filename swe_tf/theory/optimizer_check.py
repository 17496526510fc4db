"""Checks the optimizer that trains BERT against Algorithm 1 in numpy.

Both models of section 3 are built as stacks of `tf_keras` layers and trained by
`swe_tf.SharedWeightsOptimizer` around SGD. Every weight is compared with
`algorithm1` at every step: while shared, across the untie step, and after.
"""

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.theory import algorithm1
from swe_tf.theory import claims
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
  settings = dict(use_bias=False, dtype=tf.float64, kernel_initializer=initial)
  layers = [tf_keras.layers.Dense(size, **settings) for _ in range(count)]
  for layer in layers:
    layer.build([None, size])
  return layers


def train(layers, loss, schedule: algorithm1.Schedule) -> np.ndarray:
  """Trains Dense layers by sharing, then unsharing: kernels [T + 1, L, ...]."""
  kernels = [layer.kernel for layer in layers]
  optimizer = optimizer_lib.SharedWeightsOptimizer(
    tf_keras.optimizers.SGD(schedule.step_size),
    plan_lib.SharingPlan.from_layers(layers, unit_size=1),
    untie_step=schedule.untie_step,
  )
  optimizer.build(kernels)

  def step():
    with tf.GradientTape() as tape:
      value = loss()
    optimizer.apply_gradients(zip(tape.gradient(value, kernels), kernels))
    return tf.stack(kernels)

  history = [tf.stack(kernels)]
  for index in range(schedule.num_steps):
    if index == schedule.untie_step:
      optimizer.untie()
    if index in (0, schedule.untie_step):
      # A compiled step belongs to one phase: compile one for each.
      compiled = tf.function(step, autograph=False)
    history.append(compiled())
  return np.array(history)


def _as_kept(schedule: algorithm1.Schedule) -> algorithm1.Schedule:
  """The step size as TF-Keras keeps it, in single precision."""
  step_size = float(np.float32(schedule.step_size))
  return dataclasses.replace(schedule, step_size=step_size)


def regression_gap(options: experiment.Options) -> float:
  """Figure 2 with a scalar layer per coordinate: largest weight difference."""
  shape = 1, figure2.NUM_SAMPLES, figure2.NUM_LAYERS
  problem = regression.Problem.draw(options.rng(1), shape)
  schedule = _as_kept(figure2.schedule(options))
  expected = regression.descend(problem, schedule)

  inputs = tf.constant(problem.inputs[0])
  outputs = tf.linalg.matvec(inputs, problem.weights[0])
  coordinates = tf.split(inputs, figure2.NUM_LAYERS, axis=1)
  layers = _dense(figure2.NUM_LAYERS, 1, "zeros")

  def loss():
    answers = [layer(x) for layer, x in zip(layers, coordinates)]
    return tf.reduce_mean((tf.add_n(answers)[:, 0] - outputs) ** 2) / 2

  measured = train(layers, loss, schedule)
  return np.max(np.abs(measured[:, :, 0, 0] - expected[:, 0]))


def deep_linear_gap(options: experiment.Options) -> float:
  """A deep linear network from identity: largest weight difference."""
  noise = options.rng(7).standard_normal((DEEP_SIZE, DEEP_SIZE))
  target = np.eye(DEEP_SIZE) + 0.3 * noise
  settings = DEEP_STEP_SIZE, DEEP_STEPS, DEEP_UNTIE_STEP
  schedule = _as_kept(options.schedule(*settings))
  start = deep_linear.identity(target, DEEP_LAYERS)
  expected = np.array(list(deep_linear.descend(start, target, schedule)))
  layers = _dense(DEEP_LAYERS, DEEP_SIZE, "identity")

  def loss():
    # Dense layers multiply from the right, so this is the transpose.
    rows = tf.eye(DEEP_SIZE, dtype=tf.float64)
    for layer in layers:
      rows = layer(rows)
    return tf.reduce_sum((rows - target.T) ** 2) / 2

  measured = train(layers, loss, schedule)
  return np.max(np.abs(deep_linear.transpose(measured) - expected))


def run(options: experiment.Options) -> experiment.Outcome:
  """Compares both models over their whole training."""
  found = [
    claims.derived(
      "Algorithm 1: the optimizer that trains BERT = Algorithm 1 in numpy, "
      f"{name}: largest weight difference over all steps"
    ).at_most(_ROUNDING, gap(options))
    for name, gap in (
      ("linear regression (L = 200)", regression_gap),
      ("deep linear network", deep_linear_gap),
    )
  ]
  return experiment.Outcome(found)
