"""Figure 2: sharing, then unsharing, halves the test error of regression.

L = 200 coordinates, w* ~ N(1, 1), n = 120 samples, 500 steps, untied after
100. The paper does not print its step size; 0.3 is stable (the largest
curvature is near (1 + sqrt(L/n))^2 = 5.2) and fits the data in 400 steps.
Beyond the paper: the ratio of the two test errors in closed form, against n.
"""

import dataclasses

import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import claims as claims_lib
from swe_tf.theory import experiment
from swe_tf.theory import plots
from swe_tf.theory import regression

NUM_LAYERS = 200
NUM_SAMPLES = 120
NUM_STEPS = 500
UNTIE_STEP = 100
STEP_SIZE = 0.3
SEEDS = 64

# (L, all n) of the sweep of the ratio. The fourth moment of the error, and so
# the error bar, exists only for n > 4.
RATIO_SWEEP = ((200, (10, 20, 40, 80, 120, 160)), (40, (6, 8, 12, 20, 30)))
RATIO_SEEDS = 400

_SOURCE = "Figure 2"
# A claim about a mean is judged at this many standard errors.
_SIGMAS = 4.0


@dataclasses.dataclass(frozen=True)
class Curves:
  """A training run of all seeds, observed before the first and after each step.

  Attributes:
    train: mean squared training error, [steps + 1, seeds].
    test: expected squared test error, [steps + 1, seeds].
    halves: mean of the first and of the last L/2 weights, [steps + 1, 2].
      Of the first seed only: the mean over seeds hides what one run does.
    untied: the weights after the shared phase, [seeds, L].
  """

  train: np.ndarray
  test: np.ndarray
  halves: np.ndarray
  untied: np.ndarray


def train(
  problem: regression.Problem, untie_step: int, options: experiment.Options
) -> Curves:
  """Runs Algorithm 1 on all seeds from zero."""
  covariance = problem.covariance()
  path = np.array(
    list(
      algorithm1.iterates(
        np.zeros_like(problem.weights),
        lambda w: regression.gradient(covariance, w - problem.weights),
        step_size=STEP_SIZE * options.step_scale,
        num_steps=NUM_STEPS,
        layer_axis=-1,
        untie_step=untie_step,
        aggregate=options.aggregate,
      )
    )
  )
  residuals = problem.inputs @ np.moveaxis(path - problem.weights, 0, -1)
  return Curves(
    train=np.mean(residuals**2, axis=1).T,
    test=regression.test_error(path, problem),
    halves=path[:, 0].reshape(-1, 2, NUM_LAYERS // 2).mean(axis=-1),
    untied=path[untie_step],
  )


def _ratio(numerator: np.ndarray, denominator: np.ndarray):
  """The ratio of two means over seeds, and its standard error."""
  ratio = numerator.mean() / denominator.mean()
  residual = numerator - ratio * denominator
  return ratio, residual.std(ddof=1) / denominator.mean() / np.sqrt(
    residual.size
  )


def ratio_sweep(seed: int) -> list[tuple[int, np.ndarray]]:
  """Measures the ratio where both methods end, for each L of the sweep.

  Args:
    seed: of the draws.

  Returns:
    Pairs of L and an array with rows (n, ratio, standard error, predicted).
  """
  rng = np.random.default_rng([seed, 2])
  sweep = []
  for num_layers, sample_counts in RATIO_SWEEP:
    rows = []
    for num_samples in sample_counts:
      problem = regression.Problem.draw(
        rng, seeds=RATIO_SEEDS, num_layers=num_layers, num_samples=num_samples
      )
      zero = np.zeros_like(problem.weights)
      rows.append(
        (
          num_samples,
          *_ratio(
            regression.test_error(
              regression.interpolant(
                problem, zero + regression.shared_solution(problem)
              ),
              problem,
            ),
            regression.test_error(
              regression.interpolant(problem, zero), problem
            ),
          ),
          predicted_ratio(num_layers, num_samples),
        )
      )
    sweep.append((num_layers, np.array(rows)))
  return sweep


def predicted_ratio(num_layers, num_samples):
  """The ratio of the expected test errors, SWE over gradient descent."""
  return regression.expected_error_swe(
    num_layers, num_samples
  ) / regression.expected_error_gd(num_layers, num_samples)


def _draw(problem, plain, swe, sweep):
  """Both panels of Figure 2, and the ratio against n."""
  drawing, (losses, weights, ratios) = plots.panels(3)
  runs = (
    (
      "GD",
      plain,
      plots.UNSHARED,
      regression.expected_error_gd(NUM_LAYERS, NUM_SAMPLES),
    ),
    (
      "SWE",
      swe,
      plots.SHARED,
      regression.expected_error_swe(NUM_LAYERS, NUM_SAMPLES),
    ),
  )
  for name, curves, colour, expected in runs:
    losses.plot(curves.test.mean(axis=-1), color=colour, label=f"{name}, test")
    losses.plot(
      curves.train.mean(axis=-1),
      color=colour,
      linestyle=":",
      label=f"{name}, train",
    )
    losses.axhline(expected, **plots.PREDICTED)
    for half, style in enumerate(("-", "--")):
      weights.plot(
        curves.halves[:, half],
        color=colour,
        linestyle=style,
        label=f"{name}, {('first', 'last')[half]} half",
      )
  losses.plot([], [], label="test, predicted limit", **plots.PREDICTED)
  plots.finish(
    losses,
    f"Figure 2, left: mean over {SEEDS} seeds",
    "gradient steps",
    "squared error",
  )
  for half in problem.weights[0].reshape(2, -1).mean(axis=-1):
    weights.axhline(half, color=plots.BLACK, linestyle=":", linewidth=1)
  weights.plot(
    [], [], color=plots.BLACK, linestyle=":", label="true means of w*"
  )
  plots.finish(
    weights,
    "Figure 2, right: one seed",
    "gradient steps",
    "mean of 100 weights",
    loc="lower right",
  )
  for panel in (losses, weights):
    panel.axvline(UNTIE_STEP, color="0.6", linewidth=0.8)
  for (num_layers, rows), colour in zip(sweep, plots.SEQUENCE):
    ratios.errorbar(
      rows[:, 0],
      rows[:, 1],
      2 * rows[:, 2],
      color=colour,
      fmt="o",
      markersize=4,
      label=f"measured, L = {num_layers}",
    )
    grid = np.linspace(rows[0, 0], rows[-1, 0], 200)
    ratios.plot(
      grid,
      predicted_ratio(num_layers, grid),
      **plots.PREDICTED | {"color": colour},
    )
  ratios.plot([], [], label="predicted", **plots.PREDICTED)
  ratios.set_xscale("log")
  plots.label_ticks(ratios.xaxis, (6, 10, 20, 40, 80, 160))
  plots.finish(
    ratios,
    f"Test error ratio, {RATIO_SEEDS} seeds, ±2 s.e.",
    "training samples n",
    "SWE / GD",
  )
  return drawing


def run(options: experiment.Options) -> experiment.Outcome:
  """Trains both methods, and sweeps the ratio of their test errors."""
  problem = regression.Problem.draw(
    np.random.default_rng([options.seed, 1]),
    seeds=SEEDS,
    num_layers=NUM_LAYERS,
    num_samples=NUM_SAMPLES,
  )
  plain = train(problem, 0, options)
  swe = train(problem, UNTIE_STEP, options)
  sweep = ratio_sweep(options.seed)

  derived = claims_lib.DERIVED
  claims = []
  for name, curves, expected in (
    ("GD", plain, regression.expected_error_gd(NUM_LAYERS, NUM_SAMPLES)),
    ("SWE", swe, regression.expected_error_swe(NUM_LAYERS, NUM_SAMPLES)),
  ):
    final = curves.test[-1]
    claims += [
      claims_lib.at_most(
        derived,
        _SOURCE,
        f"{name} fits the training set: worst final / initial training error",
        1e-6,
        np.max(curves.train[-1] / curves.train[0]),
      ),
      claims_lib.close(
        derived,
        _SOURCE,
        f"{name}: mean test error of {SEEDS} seeds",
        expected,
        _SIGMAS * final.std(ddof=1) / np.sqrt(SEEDS),
        final.mean(),
      ),
    ]
  ratio, error = _ratio(swe.test[-1], plain.test[-1])
  worst = max(
    np.max(np.abs(rows[:, 1] - rows[:, 3]) / rows[:, 2]) for _, rows in sweep
  )
  claims += [
    claims_lib.close(
      derived,
      _SOURCE,
      "test error ratio SWE / GD",
      predicted_ratio(NUM_LAYERS, NUM_SAMPLES),
      _SIGMAS * error,
      ratio,
    ),
    claims_lib.at_most(
      derived,
      _SOURCE,
      "closed-form ratio for all n and L of the sweep: "
      "largest deviation, in standard errors",
      _SIGMAS,
      worst,
    ),
    claims_lib.at_least(
      claims_lib.OBSERVED,
      _SOURCE,
      "share of seeds in which SWE beats GD",
      1.0,
      np.mean(swe.test[-1] < plain.test[-1]),
    ),
    claims_lib.at_most(
      derived,
      _SOURCE,
      "100 shared steps reach the least-squares w_0: largest distance",
      1e-9,
      np.max(np.abs(swe.untied - regression.shared_solution(problem))),
    ),
  ]
  return experiment.Outcome(
    claims, {"figure2": _draw(problem, plain, swe, sweep)}
  )
