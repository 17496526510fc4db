"""Theorem 3, Fact 3 and the appendix lemma: the loss in discrete time.

Literal gradient descent on full matrices, at the largest step size that each
statement allows, with the bounds tested at every step. Also a stronger form of
Theorem 3: the step size of the lemma alone gives the rate 2L, with no L^2 and
no sqrt(d) in the step size (docs/theory_proofs.md has the proof). How the
number of steps grows with depth is in `depth`.
"""

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
