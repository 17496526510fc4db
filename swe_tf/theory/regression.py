"""Over-parameterised linear regression: section 3.1 of the paper.

A model y = w* . x with L coordinates, which play the part of layers, and n
noiseless samples. Here are the data, the gradient, the points where training
ends, and the expected test errors in closed form (docs/theory.md derives
them). Every array has a leading axis of seeds. Not for training: that is
`algorithm1`.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Problem:
  """A batch of regression problems, one a seed.

  Attributes:
    weights: the true w*, of shape [seeds, L].
    inputs: the samples x, of shape [seeds, n, L].
  """

  weights: np.ndarray
  inputs: np.ndarray

  @classmethod
  def draw(
    cls,
    rng: np.random.Generator,
    *,
    seeds: int,
    num_layers: int,
    num_samples: int,
    mean: float = 1.0,
    spread: float = 1.0,
  ) -> "Problem":
    """Draws w* from N(mean, spread^2) and x from N(0, 1), independently."""
    return cls(
      mean + spread * rng.standard_normal((seeds, num_layers)),
      rng.standard_normal((seeds, num_samples, num_layers)),
    )

  @property
  def common(self) -> np.ndarray:
    """w_bar*, the projection of w* on equal coordinates: [seeds, 1]."""
    return self.weights.mean(axis=-1, keepdims=True)

  @property
  def spread(self) -> np.ndarray:
    """The norm of w~* = w* - w_bar*: [seeds]."""
    return np.linalg.norm(self.weights - self.common, axis=-1)

  def covariance(self) -> np.ndarray:
    """The Hessian of the training loss: [seeds, L, L]."""
    return _transpose(self.inputs) @ self.inputs / self.inputs.shape[1]


def _transpose(matrices: np.ndarray) -> np.ndarray:
  return np.swapaxes(matrices, -1, -2)


def _apply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
  # Not matmul: its threads cost more than they give at this size.
  return np.einsum("...ij,...j->...i", matrices, vectors)


def gradient(covariance: np.ndarray, error: np.ndarray) -> np.ndarray:
  """The gradient of half the mean squared training error at w* + error."""
  return _apply(covariance, error)


def shared_solution(problem: Problem) -> np.ndarray:
  """The w_0 at which the shared phase ends: [seeds, 1].

  Least squares in one unknown: the regression of y on the sum of x (the first
  display of the proof of Proposition 1).
  """
  sums = problem.inputs.sum(axis=-1)
  outputs = _apply(problem.inputs, problem.weights)
  return np.sum(sums * outputs, axis=-1, keepdims=True) / np.sum(
    sums**2, axis=-1, keepdims=True
  )


def interpolant(problem: Problem, start: np.ndarray) -> np.ndarray:
  """The weights at which gradient descent from `start` ends: [seeds, L].

  Updates stay in the row space of X, so this is the interpolant nearest to
  the start. For n <= L.
  """
  inputs = problem.inputs
  residual = _apply(inputs, problem.weights - start)
  gram = inputs @ _transpose(inputs)
  return start + _apply(
    _transpose(inputs), np.linalg.solve(gram, residual[..., None])[..., 0]
  )


def test_error(weights: np.ndarray, problem: Problem) -> np.ndarray:
  """The expected squared error on a new x, |w - w*|^2: [seeds]."""
  return np.sum((weights - problem.weights) ** 2, axis=-1)


def expected_error_gd(num_layers, num_samples, mean=1.0, spread=1.0):
  """E|w_GD - w*|^2 for gradient descent from zero, exact for n <= L."""
  return (num_layers - num_samples) * (mean**2 + spread**2)


def expected_error_swe(num_layers, num_samples, spread=1.0):
  """E|w_SWE - w*|^2 for sharing, then unsharing, exact for 2 < n <= L."""
  correction = (
    (num_layers - 1)
    * (num_samples - 1)
    / ((num_layers - 2) * (num_samples - 2))
  )
  return (num_layers - num_samples) * spread**2 * correction
