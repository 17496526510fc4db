"""The proof of Theorem 3, one display at a time.

Every inequality of the proof is measured at every step of literal runs at the
theorem's step size. The loss of one step changes by I_1 + I_2 + I_3, the parts
of (W_0 - eta G)^L that are of first order, of higher order, and squared. The
proof compares each with the gradient G, whose norm it bounds from both sides.
The theorem itself is tested in `theorem3`.
"""

import numpy as np

from swe_tf.theory import claims
from swe_tf.theory import deep_linear
from swe_tf.theory import experiment
from swe_tf.theory import theorem3

DEPTHS = (2, 4, 8)
SIZE = 4
# Extreme eigenvalues of the targets: near identity, and far on both sides.
SPECTRA = ((0.7, 1.3), (0.3, 2.0), (1.2, 3.0))
NUM_STEPS = 1500
# The grid of the two inequalities. They are claimed for y <= x / L^2.
GRID_DEPTHS = np.array([2, 3, 4, 8, 16, 64, 256])
GRID_BASES = np.geomspace(0.1, 10, 9)
GRID_SHARES = np.geomspace(1e-4, 1, 100)

_ROUNDING = 1e-9


def inner(left: np.ndarray, right: np.ndarray) -> np.ndarray:
  """The Frobenius inner product, which the proof writes as a dotted circle."""
  return np.sum(left * right, axis=(-1, -2))


def expand_power(
  stem: np.ndarray, move: np.ndarray, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Splits (W + move)^L - W^L.

  By recurrence on L, since the differences would be lost in rounding.

  Returns:
    All of it, its part that is linear in the move, and the rest.
  """
  change = linear = rest = np.zeros_like(stem)
  power = np.broadcast_to(np.eye(stem.shape[-1]), stem.shape)
  for _ in range(depth):
    rest = stem @ rest + move @ change
    change = (stem + move) @ change + move @ power
    linear = stem @ linear + move @ power
    power = stem @ power
  return change, linear, rest


def measure(
  targets: np.ndarray, depth: int, options: experiment.Options
) -> np.ndarray:
  """Trains by sharing at the step size of Theorem 3, and splits each step.

  Returns:
    Measured over claimed for each display of the proof, at the worst step:
    largest gradient norm over its upper bound, smallest over its lower bound,
    largest relative errors of I_1 and of I_1 + I_2 + I_3, largest bound of I_2
    and largest I_3 over their claimed bounds, and the smallest decrease over
    the claimed decrease.
  """
  spectrum = np.linalg.eigvalsh(targets)
  low, phi = np.minimum(spectrum[:, 0], 1), np.maximum(spectrum[:, -1], 1)
  eta = options.step_scale * theorem3.theorem3_step_size(spectrum, depth)
  losses, stems = theorem3.share(
    targets, depth, eta, NUM_STEPS, options.aggregate
  )
  risk, stem = losses[:-1], stems[:-1]
  error = np.linalg.matrix_power(stem, depth) - targets
  gradient = np.linalg.matrix_power(stem, depth - 1) @ error
  change, linear, rest = expand_power(
    stem, -eta[:, None, None] * gradient, depth
  )
  first, second = inner(linear, error), inner(rest, error)
  third = inner(change, change) / 2

  norm = deep_linear.norm(gradient)
  root, share, step = np.sqrt(2 * risk), (depth - 1) / depth, eta * depth
  second_bound = deep_linear.norm(rest) * deep_linear.norm(error)
  decrease = risk - losses[1:]
  claimed = (2 * depth - 2) * eta * low**2 * risk
  # The decrease of a loss this small is lost in rounding. A NaN is not.
  settled = risk < 1e-8 * risk[0]
  gap = np.where(settled, 0, (first + second + third) / -decrease - 1)
  return np.array(
    [
      np.max(norm / (phi**share * root)),
      np.min(norm / (low**share * root)),
      np.max(np.abs(first / (step * norm**2) + 1)),
      np.max(np.abs(gap)),
      np.max(second_bound / (step**2 * phi**3 * root**3)),
      np.max(third / (4 * step**2 * phi**4 * risk)),
      np.min(np.where(settled, np.inf, decrease / claimed)),
    ]
  )


def power_ratios() -> tuple[float, float]:
  """Both inequalities on the grid: largest (left - x^L) / (right - x^L).

  For the second, the linear term is subtracted from both sides as well.
  """
  depth = GRID_DEPTHS[:, None, None].astype(float)
  x = GRID_BASES[:, None]
  y = GRID_SHARES * x / depth**2
  # All are divided by x^L, so that nothing on the grid overflows.
  growth = np.expm1(depth * np.log1p(y / x))
  linear = depth * y / x
  second = (growth - linear) / linear**2
  return float(np.max(growth / (2 * linear))), float(np.max(second))


def run(options: experiment.Options) -> experiment.Outcome:
  """Measures every display, for all depths and targets."""
  rng = options.rng(10)
  targets = np.concatenate(
    [
      deep_linear.positive_definite(rng, 2, SIZE, low=low, high=high)
      for low, high in SPECTRA
    ]
  )
  table = np.array([measure(targets, depth, options) for depth in DEPTHS])
  highest, lowest = table.max(axis=0), table.min(axis=0)
  first_power, second_power = power_ratios()
  source = "proof of Theorem 3"
  found = [
    claims.paper(f"{source}: ‖∇R‖ / (φ^((L-1)/L) √(2R)), worst step").at_most(
      1 + _ROUNDING, highest[0]
    ),
    claims.paper(
      f"{source}: ‖∇R‖ / (min(λmin, 1)^((L-1)/L) √(2R)), worst step"
    ).at_least(1 - _ROUNDING, lowest[1]),
    claims.paper(
      f"{source}: ((x+y)^L - x^L) / (2L x^(L-1) y) for y <= x/L², worst of a "
      "grid"
    ).at_most(1.0, first_power),
    claims.paper(
      f"{source}: ((x+y)^L - x^L - L x^(L-1) y) / (L² x^(L-2) y²) for "
      "y <= x/L², worst of a grid"
    ).at_most(1.0, second_power),
    claims.paper(f"{source}: I₁ = -ηL ‖∇₀R‖²: largest relative gap").at_most(
      _ROUNDING, highest[2]
    ),
    claims.derived(
      f"{source}: R(t+1) - R(t) = I₁ + I₂ + I₃, printed as <=: largest "
      "relative gap"
    ).at_most(1e-6, highest[3]),
    claims.derived(
      f"{source}: with φ³ for the printed φ²: product that bounds I₂ / "
      "(2√2 η²L²φ³R^(3/2)), worst step"
    ).at_most(1.0, highest[4]),
    claims.paper(f"{source}: I₃ / (4η²L²φ⁴R), worst step").at_most(
      1.0, highest[5]
    ),
    claims.paper(
      f"{source}: (R(t) - R(t+1)) / ((2L-2) η min(λmin², 1) R(t)), worst step"
    ).at_least(1 - _ROUNDING, lowest[6]),
  ]
  return experiment.Outcome(found)
