"""Theorem 1, Fact 1 and the Remark: the loss in continuous time.

Weight sharing from identity against zero-asymmetric initialisation (ZAS), as
ordinary differential equations on full matrices. A bound is tested at every
time and for all targets at once. How long training takes against depth is in
`depth`.
"""

from matplotlib import axes
import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import claims as claims_lib
from swe_tf.theory import deep_linear
from swe_tf.theory import experiment
from swe_tf.theory import plots

DEPTHS = (2, 4, 8, 16)
SIZE = 4

# The Remark's example: Phi = alpha I.
REMARK_ALPHA = 2.0
REMARK_DEPTH = 8

# The solver works to 1e-9, and margins divide by small exponents.
_ROUNDING = 1e-6


def _smallest(matrices: np.ndarray) -> np.ndarray:
  return np.linalg.eigvalsh(matrices)[..., 0]


def _times(horizon: float) -> np.ndarray:
  """Zero, then points from the first instants on, where bounds are tight."""
  return np.concatenate([[0], np.geomspace(1e-3, 1, 80) * horizon])


def _draw_decay(panel: axes.Axes, curves, bound_rate: float) -> None:
  """Draws R(t) / R(0) for every depth, and exp(-rate t)."""
  for (num_layers, times, losses), colour in zip(curves, plots.SEQUENCE):
    panel.semilogy(
      times, losses / losses[0], color=colour, label=f"L = {num_layers}"
    )
  grid = np.linspace(0, 10, 100)
  panel.semilogy(
    grid, np.exp(-bound_rate * grid), **plots.PREDICTED, label="bound"
  )
  panel.set_ylim(1e-9, 2)


def theorem1(
  rng: np.random.Generator, aggregate: algorithm1.Aggregate, panel: axes.Axes
) -> list[claims_lib.Claim]:
  """Weight sharing from identity, for positive definite targets."""
  targets = np.concatenate(
    [
      deep_linear.positive_definite(rng, 3, SIZE, low=0.4, high=2.0),
      deep_linear.positive_definite(rng, 3, SIZE, low=1.1, high=2.0),
    ]
  )
  smallest = _smallest(targets)
  margins: dict[str, list[float]] = {
    "theorem": [],
    "sharper": [],
    "no square": [],
  }
  gaps, distances, curves = [], [], []
  for num_layers in DEPTHS:
    powers = {"theorem": 2, "sharper": 2 - 2 / num_layers, "no square": 1}
    start = deep_linear.identity(targets, num_layers)
    times = _times(10 / (num_layers * min(1, smallest.min() ** 2)))
    path = deep_linear.flow(start, targets, times, aggregate)
    losses = deep_linear.loss(path, targets)
    for name, power in powers.items():
      rate = 2 * num_layers * np.minimum(1, smallest**power)
      margins[name].append(
        deep_linear.decay_margin(losses, times[:, None] * rate)
      )
    gaps.append(
      np.min(
        _smallest(path[..., 0, :, :]) ** (num_layers - 1)
        - np.minimum(1, smallest)
      )
    )
    plain = deep_linear.flow(start, targets, times)
    distances.append(np.max(np.abs(path - plain)))
    curves.append((num_layers, num_layers * times, losses[:, 0]))
  _draw_decay(panel, curves, 2 * smallest[0] ** 2)
  panel.set_xlim(0, 10)
  plots.finish(
    panel,
    f"Theorem 1: sharing, λmin(Φ) = {smallest[0]:.1f}",
    "depth × time, L t",
    "R(t) / R(0)",
  )
  return [
    claims_lib.at_least(
      claims_lib.PAPER,
      "Theorem 1",
      "decay of R / decay of the bound "
      "exp(-2L min(1, λmin²) t), worst time, target and L",
      1 - _ROUNDING,
      min(margins["theorem"]),
    ),
    claims_lib.at_least(
      claims_lib.DERIVED,
      "Theorem 1",
      "the same for the sharper rate 2L min(1, λmin^(2 - 2/L))",
      1 - _ROUNDING,
      min(margins["sharper"]),
    ),
    claims_lib.at_most(
      claims_lib.SLIP,
      "after Theorem 1",
      "the rate repeated without the "
      "square, 2L min(1, λmin), is too fast: the same measure",
      0.95,
      min(margins["no square"]),
    ),
    claims_lib.at_least(
      claims_lib.PAPER,
      "proof of Theorem 1",
      "λmin(W₀(t)^(L-1)) - min(1, λmin(Φ))",
      -_ROUNDING,
      min(gaps),
    ),
    claims_lib.at_most(
      claims_lib.SLIP,
      "Theorem 1",
      "sharing is not what speeds it up: "
      "plain gradient flow from identity has the same path; largest "
      "distance",
      1e-5,
      max(distances),
    ),
  ]


def fact1(rng: np.random.Generator, panel: axes.Axes) -> list[claims_lib.Claim]:
  """ZAS, for targets of any kind."""
  targets = rng.standard_normal((6, SIZE, SIZE))
  times = _times(10)
  margins, curves = [], []
  for num_layers in DEPTHS:
    path = deep_linear.flow(
      deep_linear.zero_asymmetric(targets, num_layers), targets, times
    )
    losses = deep_linear.loss(path, targets)
    margins.append(deep_linear.decay_margin(losses, 2 * times[:, None]))
    curves.append((num_layers, times, losses[:, 0]))
  _draw_decay(panel, curves, 2)
  panel.set_xlim(0, 4)
  plots.finish(
    panel,
    "Fact 1: ZAS, a target that is not symmetric",
    "time t",
    "R(t) / R(0)",
  )
  return [
    claims_lib.at_least(
      claims_lib.PAPER,
      "Fact 1",
      "ZAS: decay of R / decay of exp(-2t), any "
      "target, worst time, target and L",
      1 - _ROUNDING,
      min(margins),
    )
  ]


def remark(
  aggregate: algorithm1.Aggregate, panel: axes.Axes
) -> list[claims_lib.Claim]:
  """The slopes at t = 0 for Phi = alpha I."""
  target = REMARK_ALPHA * np.eye(SIZE)
  times = np.linspace(0, 0.12, 60)
  claims = []
  for name, initial, combine, colour, slope in (
    (
      "sharing",
      deep_linear.identity,
      aggregate,
      plots.SHARED,
      -2 * REMARK_DEPTH,
    ),
    ("ZAS", deep_linear.zero_asymmetric, None, plots.UNSHARED, -2),
  ):
    start = initial(target, REMARK_DEPTH)
    gradient = deep_linear.gradient(start, target)
    velocity = (
      gradient
      if combine is None
      else combine(gradient, axis=deep_linear.LAYER_AXIS, keepdims=True)
    )
    measured = -np.sum(gradient * velocity) / deep_linear.loss(start, target)
    claims.append(
      claims_lib.close(
        claims_lib.PAPER,
        "Remark",
        f"{name}: R'(0) / R(0) at L = {REMARK_DEPTH}, Φ = 2I",
        slope,
        1e-9,
        measured,
      )
    )
    losses = deep_linear.loss(
      deep_linear.flow(start, target, times, combine), target
    )
    panel.semilogy(times, losses / losses[0], color=colour, label=name)
    panel.semilogy(times, np.exp(slope * times), **plots.PREDICTED)
  panel.plot(
    [], [], label="predicted at t = 0:\nexp(−2Lt), exp(−2t)", **plots.PREDICTED
  )
  panel.set_ylim(1e-2, 1.3)
  plots.finish(
    panel, f"Remark: Φ = 2I, L = {REMARK_DEPTH}", "time t", "R(t) / R(0)"
  )
  return claims


def run(options: experiment.Options) -> experiment.Outcome:
  """Integrates both methods for all depths and targets."""
  rng = np.random.default_rng([options.seed, 4])
  drawing, (left, middle, right) = plots.panels(3)
  claims = (
    theorem1(rng, options.aggregate, left)
    + fact1(rng, middle)
    + remark(options.aggregate, right)
  )
  return experiment.Outcome(claims, {"theorem1": drawing})
