"""Over-parameterised linear regression: section 3.1 of the paper.

A model y = w* . x with L coordinates, which play the part of layers, and n
noiseless samples. docs/theory_proofs.md derives the expected errors. Every
array has a leading axis of seeds.
"""

from collections.abc import Callable
import dataclasses

import numpy as np

from swe_tf.theory import algorithm1


@dataclasses.dataclass(frozen=True)
class Problem:
  """A batch of regression problems, one per seed."""

  weights: np.ndarray  # The true w*: [seeds, L].
  inputs: np.ndarray  # The samples x: [seeds, n, L].

  @classmethod
  def draw(
    cls, rng: np.random.Generator, shape: tuple[int, int, int], spread=1.0
  ) -> "Problem":
    """Draws w* from N(1, spread^2) and x from N(0, 1): [seeds, n, L]."""
    seeds, _, num_layers = shape
    weights = 1 + spread * rng.standard_normal((seeds, num_layers))
    return cls(weights, rng.standard_normal(shape))

  @property
  def common(self) -> np.ndarray:
    """w_bar*, the projection of w* on equal coordinates: [seeds, 1]."""
    return self.weights.mean(axis=-1, keepdims=True)


def _apply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
  # Not matmul: its threads cost more than they give at this size.
  return np.einsum("...ij,...j->...i", matrices, vectors)


def gradient(problem: Problem) -> Callable[[np.ndarray], np.ndarray]:
  """Returns the gradient of half the mean squared training error, from w."""
  hessian = problem.inputs.swapaxes(-1, -2) @ problem.inputs
  hessian /= problem.inputs.shape[1]
  return lambda weights: _apply(hessian, weights - problem.weights)


def descend(problem: Problem, schedule: algorithm1.Schedule) -> np.ndarray:
  """Trains by Algorithm 1 from zero: [T + 1, seeds, L]."""
  start = np.zeros_like(problem.weights)
  return np.array(list(algorithm1.iterates(start, gradient(problem), schedule)))


def shared_solution(problem: Problem) -> np.ndarray:
  """The w_0 at which the shared phase ends: [seeds, 1].

  The regression of y on the sum of x (proof of Proposition 1, first display).
  """
  sums = problem.inputs.sum(axis=-1)
  outputs = _apply(problem.inputs, problem.weights)
  covariances = np.sum(sums * outputs, axis=-1, keepdims=True)
  return covariances / np.sum(sums**2, axis=-1, keepdims=True)


def test_error(weights: np.ndarray, problem: Problem) -> np.ndarray:
  """The expected squared error on a new x, |w - w*|^2: [seeds]."""
  return np.sum((weights - problem.weights) ** 2, axis=-1)


def expected_error_gd(num_layers, num_samples):
  """E|w_GD - w*|^2 from zero, for w* ~ N(1, 1), exact for n <= L."""
  return 2 * (num_layers - num_samples)


def expected_error_swe(num_layers, num_samples):
  """E|w_SWE - w*|^2 after sharing, for w* ~ N(., 1), exact for 2 < n <= L."""
  above = (num_layers - 1) * (num_samples - 1)
  below = (num_layers - 2) * (num_samples - 2)
  return (num_layers - num_samples) * (above / below)
