"""Theorem 3, Fact 3 and the appendix lemma: the loss in discrete time.

Literal gradient descent on full matrices, at the largest step size that each
statement allows, with the bounds tested at every step. Also a stronger form of
Theorem 3: the step size of the lemma alone gives the rate 2L, with no L^2 and
no sqrt(d) in the step size (docs/theory.md has the proof). How the number of
steps grows with depth is in `depth`.
"""

import functools
import itertools

import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import claims
from swe_tf.theory import deep_linear
from swe_tf.theory import experiment

DEPTHS = (2, 4, 8)
SIZE = 4
LEMMA_STEPS = 400
# At these depths the bound falls to 0.05 in this many steps, so it is a test.
FACT3_DEPTHS = (2, 8)
FACT3_STEPS = 70_000
FACT3_EVERY = 50
# Of the bound (1 - eta / 2)^t.
FACT3_RATE = 0.5
# Of the proof: extreme eigenvalues of targets near identity and far from it.
SPECTRA = ((0.7, 1.3), (0.3, 2.0), (1.2, 3.0))
PROOF_STEPS = 1500
# The grid of the two inequalities. They are claimed for y <= x / L^2.
GRID_DEPTHS = np.array([2, 3, 4, 8, 16, 64, 256])
GRID_BASES = np.geomspace(0.1, 10, 9)
GRID_SHARES = np.geomspace(1e-4, 1, 100)

# Margins divide logarithms by exponents that can be as small as 1e-4.
_ROUNDING = 1e-9


def lemma_step_size(eigenvalues: np.ndarray, num_layers) -> np.ndarray:
  """1 / (L max(lambda_max^2, 1)): the largest step size of the lemma."""
  return 1 / (num_layers * np.maximum(eigenvalues[..., -1], 1) ** 2)


def theorem3_step_size(eigenvalues: np.ndarray, num_layers) -> np.ndarray:
  """The largest step size of Theorem 3, of order L^-2."""
  lowest = np.minimum(eigenvalues[..., 0], 1)
  highest = np.maximum(eigenvalues[..., -1], 1)
  root = np.sqrt(eigenvalues.shape[-1])
  return lowest**2 / (4 * root * num_layers**2 * highest**4)


def fact3_step_size(norm: float, num_layers) -> np.ndarray:
  """The largest step size of Fact 3, for a target of this Frobenius norm."""
  depth = np.asarray(num_layers, float)
  xi = np.maximum(max(2 * norm, 1), 3 * depth**-0.5)
  return np.minimum(1 / (4 * depth**3 * xi**6), 1 / (144 * depth**2 * xi**4))


def share(targets, num_layers: int, step_size, num_steps, aggregate=np.mean):
  """Trains from identity, always shared: losses and stems W_0(t) by step."""
  schedule = algorithm1.Schedule(step_size, num_steps, num_steps, aggregate)
  start = deep_linear.identity(targets, num_layers)
  path = np.array(list(deep_linear.descend(start, targets, schedule)))
  return deep_linear.loss(path, targets), path[..., 0, :, :]


def theorem3(rng, options) -> list[claims.Claim]:
  """Theorem 3 at its step size, until the bound is 1e-6."""
  # Its step size is tiny for a wide spectrum; this one takes 6,000 steps.
  targets = deep_linear.positive_definite(rng, 4, SIZE, low=0.7, high=1.3)
  eigenvalues = np.linalg.eigvalsh(targets)
  lowest = np.minimum(eigenvalues[:, 0], 1)
  margins = []
  for depth in DEPTHS:
    step_size = options.step_scale * theorem3_step_size(eigenvalues, depth)
    rate = (2 * depth - 2) * lowest**2 * step_size
    num_steps = int(np.ceil(np.log(1e6) / rate.min()))
    losses, _ = share(targets, depth, step_size, num_steps, options.aggregate)
    margins.append(deep_linear.decay_margin(losses, rate))
  return [
    claims.paper(
      "Theorem 3: decay of R / decay of the bound exp(-(2L-2) min(λmin², 1) "
      "ηt), at the step size limit"
    ).at_least(1 - _ROUNDING, min(margins))
  ]


def lemma(rng, options) -> list[claims.Claim]:
  """The lemma and the stronger Theorem 3, at the lemma's step size."""
  targets = deep_linear.positive_definite(rng, 8, SIZE, low=0.2, high=3.0)
  spectrum = np.linalg.eigvalsh(targets)
  lowest = np.minimum(spectrum[:, :1], 1)
  highest = np.maximum(spectrum[:, -1:], 1)
  margins, excursions = [], []
  for depth in DEPTHS:
    step_size = options.step_scale * lemma_step_size(spectrum, depth)
    settings = step_size, LEMMA_STEPS, options.aggregate
    losses, stems = share(targets, depth, *settings)
    # A run that diverges, on purpose, has no eigenvalues.
    eigenvalues = np.linalg.eigvalsh(np.where(np.isfinite(stems), stems, 1e9))
    low, high = lowest ** (1 / depth), highest ** (1 / depth)
    excursions += [np.max(low - eigenvalues), np.max(eigenvalues - high)]
    rate = 2 * depth * lowest[:, 0] ** (2 - 2 / depth) * step_size
    margins.append(deep_linear.decay_margin(losses, rate))
  return [
    claims.paper(
      "Lemma: largest step outside the bounds on the eigenvalues of W₀(t), at "
      "the step size limit"
    ).at_most(1e-9, max(excursions)),
    claims.derived(
      "Theorem 3, stronger: decay of R / decay of exp(-2L min(λmin^(2-2/L), 1) "
      "ηt), at the lemma's step size"
    ).at_least(1 - _ROUNDING, min(margins)),
  ]


def fact3(rng, options) -> list[claims.Claim]:
  """ZAS at the step size of Fact 3, for small targets of any kind."""
  # Up to a norm of 1/2 the target does not shrink the step size.
  norms = np.array([0.5, 0.5, 0.05, 0.05])[:, None, None]
  targets = rng.standard_normal((len(norms), SIZE, SIZE))
  targets *= norms / np.linalg.norm(targets, axis=(-1, -2), keepdims=True)
  margins, bounds = [], []
  for depth in FACT3_DEPTHS:
    step_size = options.step_scale * fact3_step_size(0.5, depth)
    schedule = algorithm1.Schedule(step_size, FACT3_STEPS)
    start = deep_linear.zero_asymmetric(targets, depth)
    path = deep_linear.descend(start, targets, schedule)
    kept = itertools.islice(path, 0, None, FACT3_EVERY)
    losses = np.array([deep_linear.loss(network, targets) for network in kept])
    rate = -np.log1p(-FACT3_RATE * step_size)
    margins.append(deep_linear.decay_margin(losses, FACT3_EVERY * rate))
    bounds.append(np.exp(-FACT3_STEPS * rate))
  return [
    claims.paper(
      "Fact 3: ZAS: decay of R / decay of (1 - η/2)^t until that bound is "
      f"{max(bounds):.2f}, any target of norm <= 1/2, at the step size limit"
    ).at_least(1 - _ROUNDING, min(margins))
  ]


def second_order_ratio(num_layers: int, eigenvalue: float) -> float:
  """The product that bounds I_2 in the proof, over its printed bound.

  For one eigenvalue phi > 1, at W_0^L = 0.99 phi and at the step size of
  Theorem 3. Printed with phi^2; the displays before it give phi^3.
  """
  step_size = theorem3_step_size(np.array([eigenvalue]), num_layers)
  stem = (0.99 * eigenvalue) ** (1 / num_layers)
  error = stem**num_layers - eigenvalue
  move = step_size * stem ** (num_layers - 1) * error
  second_order = (stem - move) ** num_layers - stem**num_layers
  second_order += num_layers * stem ** (num_layers - 1) * move
  # With 2R = error^2, the printed 2 sqrt(2) R^(3/2) is |error|^3.
  printed = step_size**2 * num_layers**2 * eigenvalue**2 * abs(error) ** 3
  return abs(second_order * error) / printed


def run(options: experiment.Options) -> experiment.Outcome:
  """Runs every statement at its own step size, for all depths and targets."""
  rng = options.rng(5)
  # The display in the lemma's proof sums i = 1 to L - 1 where the step before
  # it has L terms: as printed, it allows 1 / ((L - 1) lambda^(2L - 2)).
  layers, eigenvalue = 2, 4.0
  step_size = 1 / ((layers - 1) * eigenvalue ** (2 - 2 / layers))
  _, stems = share(np.full((1, 1), eigenvalue), layers, step_size, 200)
  found = [
    *lemma(rng, options),
    *theorem3(rng, options),
    *fact3(rng, options),
    claims.slip(
      "proof of the Lemma: its display sums L - 1 terms, not L; that step size "
      "overshoots: W₀ / Φ^(1/L), L = 2, Φ = 4"
    ).at_least(1.01, stems.max() / eigenvalue ** (1 / layers)),
    claims.slip(
      "proof of Theorem 3: I₂ is printed with φ², not φ³: product that bounds "
      "I₂ / printed bound, φ = 8, L = 32"
    ).at_least(1.01, second_order_ratio(32, 8.0)),
  ]
  return experiment.Outcome(found)


def inner(left: np.ndarray, right: np.ndarray) -> np.ndarray:
  """The Frobenius inner product, which the proof writes as a dotted circle."""
  return np.sum(left * right, axis=(-1, -2))


def expand_power(stem: np.ndarray, move: np.ndarray, depth: int):
  """(W + move)^L - W^L: all of it, its part linear in the move, and the rest.

  By recurrence on L, since the differences would be lost in rounding.
  """
  change = linear = rest = np.zeros_like(stem)
  power = np.broadcast_to(np.eye(stem.shape[-1]), stem.shape)
  for _ in range(depth):
    rest = stem @ rest + move @ change
    change = (stem + move) @ change + move @ power
    linear = stem @ linear + move @ power
    power = stem @ power
  return change, linear, rest


def measure_proof(targets, depth: int, options) -> np.ndarray:
  """Trains by sharing at the step size of Theorem 3, and splits each step.

  The loss of one step changes by I_1 + I_2 + I_3, the parts of (W_0 - eta G)^L
  that are of first order, of higher order, and squared. The proof compares each
  with the gradient G, whose norm it bounds from both sides. Returns measured
  over claimed for each display of the proof, at the worst step.
  """
  spectrum = np.linalg.eigvalsh(targets)
  low, phi = np.minimum(spectrum[:, 0], 1), np.maximum(spectrum[:, -1], 1)
  eta = options.step_scale * theorem3_step_size(spectrum, depth)
  losses, stems = share(targets, depth, eta, PROOF_STEPS, options.aggregate)
  risk, stem = losses[:-1], stems[:-1]
  error = np.linalg.matrix_power(stem, depth) - targets
  gradient = np.linalg.matrix_power(stem, depth - 1) @ error
  move = -eta[:, None, None] * gradient
  change, linear, rest = expand_power(stem, move, depth)
  first, second = inner(linear, error), inner(rest, error)
  third = inner(change, change) / 2

  norm = deep_linear.norm(gradient)
  root, power, step = np.sqrt(2 * risk), (depth - 1) / depth, eta * depth
  second_bound = deep_linear.norm(rest) * deep_linear.norm(error)
  decrease = risk - losses[1:]
  claimed = (2 * depth - 2) * eta * low**2 * risk
  # The decrease of a loss this small is lost in rounding. A NaN is not.
  settled = risk < 1e-8 * risk[0]
  gap = np.where(settled, 0, (first + second + third) / -decrease - 1)
  return np.array(
    [
      np.max(norm / (phi**power * root)),  # The gradient's upper bound,
      np.min(norm / (low**power * root)),  # and its lower bound.
      np.max(np.abs(first / (step * norm**2) + 1)),
      np.max(np.abs(gap)),
      np.max(second_bound / (step**2 * phi**3 * root**3)),
      np.max(third / (4 * step**2 * phi**4 * risk)),
      np.min(np.where(settled, np.inf, decrease / claimed)),
    ]
  )


def run_proof(options: experiment.Options) -> experiment.Outcome:
  """Measures every display, for all depths and targets."""
  # Both inequalities on the grid, as (left - x^L) / (right - x^L); for the
  # second, the linear term is subtracted from both sides as well.
  depth = GRID_DEPTHS[:, None, None].astype(float)
  x = GRID_BASES[:, None]
  y = GRID_SHARES * x / depth**2
  # All are divided by x^L, so that nothing on the grid overflows.
  growth = np.expm1(depth * np.log1p(y / x))
  linear = depth * y / x
  first_power = np.max(growth / (2 * linear))
  second_power = np.max((growth - linear) / linear**2)
  rng = options.rng(10)
  draw = functools.partial(deep_linear.positive_definite, rng, 2, SIZE)
  targets = np.concatenate([draw(low=low, high=high) for low, high in SPECTRA])
  table = np.array([measure_proof(targets, n, options) for n in DEPTHS])
  highest, lowest = table.max(axis=0), table.min(axis=0)
  paper, derived = (
    lambda text, kind=kind: kind(f"proof of Theorem 3: {text}")
    for kind in (claims.paper, claims.derived)
  )
  exact, worst = 1 - _ROUNDING, "worst step"
  found = [
    paper(f"‖∇R‖ / (φ^((L-1)/L) √(2R)), {worst}").at_most(
      1 + _ROUNDING, highest[0]
    ),
    paper(f"‖∇R‖ / (min(λmin, 1)^((L-1)/L) √(2R)), {worst}").at_least(
      exact, lowest[1]
    ),
    paper(
      "((x+y)^L - x^L) / (2L x^(L-1) y) for y <= x/L², worst of a grid"
    ).at_most(1.0, first_power),
    paper(
      "((x+y)^L - x^L - L x^(L-1) y) / (L² x^(L-2) y²) for y <= x/L², worst of "
      "a grid"
    ).at_most(1.0, second_power),
    paper("I₁ = -ηL ‖∇₀R‖²: largest relative gap").at_most(
      _ROUNDING, highest[2]
    ),
    derived(
      "R(t+1) - R(t) = I₁ + I₂ + I₃, printed as <=: largest relative gap"
    ).at_most(1e-6, highest[3]),
    derived(
      "with φ³ for the printed φ²: product that bounds I₂ / "
      f"(2√2 η²L²φ³R^(3/2)), {worst}"
    ).at_most(1.0, highest[4]),
    paper(f"I₃ / (4η²L²φ⁴R), {worst}").at_most(1.0, highest[5]),
    paper(f"(R(t) - R(t+1)) / ((2L-2) η min(λmin², 1) R(t)), {worst}").at_least(
      exact, lowest[6]
    ),
  ]
  return experiment.Outcome(found)
