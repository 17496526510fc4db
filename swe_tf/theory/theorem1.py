"""Theorem 1, Fact 1 and the Remark: the loss in continuous time.

Weight sharing from identity against zero-asymmetric initialisation (ZAS), as
ordinary differential equations on full matrices. How long training takes
against depth is in `depth`.
"""

import functools

import numpy as np

from swe_tf.theory import claims
from swe_tf.theory import deep_linear
from swe_tf.theory import experiment

DEPTHS = (2, 4, 8, 16)
SIZE = 4

# The Remark's example: Phi = alpha I.
REMARK_ALPHA = 2.0
REMARK_DEPTH = 8

# The solver works to 1e-9, and margins divide by small exponents.
_ROUNDING = 1e-6


def _times(horizon: float) -> np.ndarray:
  """Zero, then points from the first instants on, where bounds are tight."""
  return np.concatenate([[0], np.geomspace(1e-3, 1, 80) * horizon])


def theorem1(rng, aggregate) -> list[claims.Claim]:
  """Weight sharing from identity, for positive definite targets."""
  draw = functools.partial(deep_linear.positive_definite, rng, 3, SIZE, high=2)
  targets = np.concatenate([draw(low=0.4), draw(low=1.1)])
  smallest = np.linalg.eigvalsh(targets)[:, 0]
  margins, gaps, distances = [], [], []
  for depth in DEPTHS:
    start = deep_linear.identity(targets, depth)
    times = _times(10 / (depth * min(1, smallest.min() ** 2)))
    path = deep_linear.flow(start, targets, times, aggregate)
    losses = deep_linear.loss(path, targets)
    rates = 2 * depth * np.minimum(1, [smallest**2, smallest])
    margin = functools.partial(deep_linear.decay_margin, losses, times=times)
    margins.append(list(map(margin, rates)))
    stems = np.linalg.eigvalsh(path[..., 0, :, :])[..., 0]
    gaps.append(np.min(stems ** (depth - 1) - np.minimum(1, smallest)))
    plain = deep_linear.flow(start, targets, times)
    distances.append(np.max(np.abs(path - plain)))
  printed, without_square = np.min(margins, axis=0)
  return [
    claims.paper(
      "Theorem 1: decay of R / decay of the bound exp(-2L min(1, λmin²) t), "
      "worst time, target and L"
    ).at_least(1 - _ROUNDING, printed),
    claims.slip(
      "after Theorem 1: the rate repeated without the square, 2L min(1, λmin), "
      "is too fast: the same measure"
    ).at_most(0.95, without_square),
    claims.paper(
      "proof of Theorem 1: λmin(W₀(t)^(L-1)) - min(1, λmin(Φ))"
    ).at_least(-_ROUNDING, min(gaps)),
    claims.slip(
      "Theorem 1: sharing is not what speeds it up: plain gradient flow from "
      "identity has the same path; largest distance"
    ).at_most(1e-5, max(distances)),
  ]


def fact1(rng) -> list[claims.Claim]:
  """ZAS, for targets of any kind."""
  targets = rng.standard_normal((6, SIZE, SIZE))
  times = _times(10)
  margins = []
  for depth in DEPTHS:
    start = deep_linear.zero_asymmetric(targets, depth)
    path = deep_linear.flow(start, targets, times)
    losses = deep_linear.loss(path, targets)
    margins.append(deep_linear.decay_margin(losses, 2, times))
  return [
    claims.paper(
      "Fact 1: ZAS: decay of R / decay of exp(-2t), any target, worst time, "
      "target and L"
    ).at_least(1 - _ROUNDING, min(margins))
  ]


def remark(aggregate) -> list[claims.Claim]:
  """The slopes at t = 0 for Phi = alpha I."""
  target = REMARK_ALPHA * np.eye(SIZE)
  found = []
  identity = deep_linear.identity(target, REMARK_DEPTH)
  zero = deep_linear.zero_asymmetric(target, REMARK_DEPTH)
  for name, start, combine, slope in (
    ("sharing", identity, aggregate, -2 * REMARK_DEPTH),
    ("ZAS", zero, None, -2),
  ):
    velocity = gradient = deep_linear.gradient(start, target)
    if combine is not None:
      velocity = combine(gradient, axis=deep_linear.LAYER_AXIS, keepdims=True)
    measured = -np.sum(gradient * velocity) / deep_linear.loss(start, target)
    found.append(
      claims.paper(
        f"Remark: {name}: R'(0) / R(0) at L = {REMARK_DEPTH}, Φ = 2I"
      ).close(slope, 1e-9, measured)
    )
  return found


def run(options: experiment.Options) -> experiment.Outcome:
  """Integrates both methods for all depths and targets."""
  rng, aggregate = options.rng(4), options.aggregate
  found = [*theorem1(rng, aggregate), *fact1(rng), *remark(aggregate)]
  return experiment.Outcome(found)
