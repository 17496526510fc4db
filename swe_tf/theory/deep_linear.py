"""Deep linear networks: section 3.2 of the paper.

A network is an array of shape [..., L, d, d] that holds W_1, ..., W_L; leading
axes are independent networks.
"""

from collections.abc import Iterator
import dataclasses
import functools

import numpy as np
from scipy import integrate

from swe_tf.theory import algorithm1

LAYER_AXIS = -3


def transpose(matrices: np.ndarray) -> np.ndarray:
  return np.swapaxes(matrices, -1, -2)


def norm(matrices: np.ndarray, order: int | None = None) -> np.ndarray:
  """Frobenius norms; of order 2 and -2, extreme singular values."""
  return np.linalg.norm(matrices, ord=order, axis=(-1, -2))


def product(network: np.ndarray) -> np.ndarray:
  """W_L ... W_1."""
  layers = np.moveaxis(network, LAYER_AXIS, 0)
  return functools.reduce(lambda below, layer: layer @ below, layers)


def loss(network: np.ndarray, target: np.ndarray) -> np.ndarray:
  """R = |W_L ... W_1 - Phi|_F^2 / 2."""
  return np.sum((product(network) - target) ** 2, axis=(-1, -2)) / 2


def gradient(network: np.ndarray, target: np.ndarray) -> np.ndarray:
  """The gradient of R: W_{L:l+1}^T (W_{L:1} - Phi) W_{l-1:1}^T for each l."""
  layers = np.moveaxis(network, LAYER_AXIS, 0)
  below = [np.broadcast_to(np.eye(target.shape[-1]), layers[0].shape)]
  for layer in layers:
    below.append(layer @ below[-1])
  # From the top down: the error, pulled back through the layers above l.
  error = below.pop() - target
  gradients = []
  for layer, inputs in zip(reversed(layers), reversed(below)):
    gradients.append(error @ transpose(inputs))
    error = transpose(layer) @ error
  return np.stack(gradients[::-1], axis=LAYER_AXIS)


def identity(target: np.ndarray, num_layers: int) -> np.ndarray:
  """The initialisation of Theorems 1 to 3: every layer is I."""
  size = target.shape[-1]
  return np.tile(np.eye(size), (*target.shape[:-2], num_layers, 1, 1))


def zero_asymmetric(target: np.ndarray, num_layers: int) -> np.ndarray:
  """The ZAS initialisation of Facts 1 and 3: I, and zero for the last layer."""
  network = identity(target, num_layers)
  network[..., -1, :, :] = 0
  return network


def positive_definite(
  rng: np.random.Generator, count: int, size: int, *, low: float, high: float
) -> np.ndarray:
  """Draws symmetric targets with extreme eigenvalues `low` and `high`."""
  position = rng.uniform(size=(count, size))
  position[:, :2] = 0, 1
  eigenvalues = low * (high / low) ** position
  vectors, _ = np.linalg.qr(rng.standard_normal((count, size, size)))
  return vectors * eigenvalues[:, None, :] @ transpose(vectors)


def descend(
  network: np.ndarray, target: np.ndarray, schedule: algorithm1.Schedule
) -> Iterator[np.ndarray]:
  """Yields the networks of Algorithm 1, with a step size for each target."""
  step_size = np.asarray(schedule.step_size)[..., None, None, None]
  return algorithm1.iterates(
    network,
    lambda weights: gradient(weights, target),
    dataclasses.replace(schedule, step_size=step_size),
    LAYER_AXIS,
  )


def flow(network, target, times, aggregate=None) -> np.ndarray:
  """Gradient flow: the networks at `times`, along a new first axis.

  `aggregate` combines the gradients of the layers; None leaves each its own.
  """

  def velocity(_, state):
    update = gradient(state.reshape(network.shape), target)
    if aggregate is not None:
      shared = aggregate(update, axis=LAYER_AXIS, keepdims=True)
      update = np.broadcast_to(shared, network.shape)
    return -update.ravel()

  span, settings = (times[0], times[-1]), dict(rtol=1e-9, atol=1e-12)
  solution = integrate.solve_ivp(
    velocity, span, network.ravel(), "DOP853", times, **settings
  )
  if not solution.success:
    raise RuntimeError(
      f"The ODE solver stopped at t = {solution.t[-1]:.3g}: {solution.message}"
    )
  return solution.y.T.reshape(len(times), *network.shape)


def decay_margin(losses: np.ndarray, rate, times=None) -> float:
  """How many times faster than a bound exp(-rate t) the loss R(t) decays.

  The smallest log(R(0) / R(t)) / (rate t), so the bound holds iff it is at
  least 1. Below exp(-20), where rounding dominates, the bound counts as that.
  """
  times = np.arange(len(losses)) if times is None else times
  exponents = np.minimum(times[1:, None] * rate, 20)
  with np.errstate(divide="ignore"):  # A loss of exactly zero is no error.
    decays = np.log(losses[0]) - np.log(losses[1:])
  return float(np.min(decays / exponents))
