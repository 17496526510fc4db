"""Figure 2: sharing, then unsharing, halves the test error of regression.

L = 200 coordinates, w* ~ N(1, 1), n = 120 samples, 500 steps, untied after
100. The paper does not print its step size; 0.3 is stable (the largest
curvature is near (1 + sqrt(L/n))^2 = 5.2) and fits the data in 400 steps.
"""

import dataclasses
from typing import Any

from matplotlib import figure
import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import claims
from swe_tf.theory import experiment
from swe_tf.theory import regression

NUM_LAYERS = 200
NUM_SAMPLES = 120
NUM_STEPS = 500
UNTIE_STEP = 100
STEP_SIZE = 0.3
SEEDS = 64

# A claim about a mean is judged at this many standard errors.
_SIGMAS = 4.0
# Blue and vermilion of Okabe and Ito's palette, which colour-blind readers can
# tell apart. A prediction is dashed and dark; what was measured is coloured.
_COLOURS = {"SWE": "#0072B2", "GD": "#D55E00"}
_PREDICTED: dict[str, Any] = dict(color="black", linestyle="--", linewidth=1.2)
_TRUE: dict[str, Any] = dict(color="black", linestyle=":", linewidth=1)


def schedule(options: experiment.Options) -> algorithm1.Schedule:
  """The settings of SWE in Figure 2."""
  return options.schedule(STEP_SIZE, NUM_STEPS, UNTIE_STEP)


def predicted_ratio(num_layers, num_samples):
  """The ratio of the expected test errors, SWE over gradient descent."""
  swe = regression.expected_error_swe(num_layers, num_samples)
  return swe / regression.expected_error_gd(num_layers, num_samples)


def _halves(weights: np.ndarray) -> np.ndarray:
  """The means of the first and of the last L/2 weights: [..., 2]."""
  return weights.reshape(*weights.shape[:-1], 2, -1).mean(axis=-1)


def run(options: experiment.Options) -> experiment.Outcome:
  """Trains both methods, and draws both panels of the paper's figure."""
  shape = SEEDS, NUM_SAMPLES, NUM_LAYERS
  problem = regression.Problem.draw(options.rng(1), shape)
  swe = schedule(options)
  plain = dataclasses.replace(swe, untie_step=0)
  # Without pyplot, which would keep global state.
  drawing = figure.Figure(figsize=(9.2, 3.8), layout="constrained")
  losses, weights = drawing.subplots(1, 2)
  found, finals = [], {}
  for name, method, expected_error in (
    ("GD", plain, regression.expected_error_gd),
    ("SWE", swe, regression.expected_error_swe),
  ):
    expected, colour = expected_error(NUM_LAYERS, NUM_SAMPLES), _COLOURS[name]
    path = regression.descend(problem, method)
    residuals = problem.inputs @ np.moveaxis(path - problem.weights, 0, -1)
    train = np.mean(residuals**2, axis=1).T
    test = regression.test_error(path, problem)
    finals[name] = final = test[-1]
    error = final.std(ddof=1) / np.sqrt(SEEDS)
    found += [
      claims.derived(
        f"Figure 2: {name} fits the training set: worst final / initial "
        "training error"
      ).at_most(1e-6, np.max(train[-1] / train[0])),
      claims.derived(
        f"Figure 2: {name}: mean test error of {SEEDS} seeds"
      ).close(expected, _SIGMAS * error, final.mean()),
    ]
    for kind, each, style in (("test", test, "-"), ("train", train, ":")):
      label = f"{name}, {kind}"
      losses.plot(each.mean(axis=-1), style, color=colour, label=label)
    losses.axhline(expected, **_PREDICTED)
    # One seed only: the mean over seeds hides what one run does.
    first, last = _halves(path[:, 0]).T
    weights.plot(first, "-", color=colour, label=f"{name}, first half")
    weights.plot(last, "--", color=colour, label=f"{name}, last half")

  # A legend has one entry for all lines of a kind.
  losses.plot([], [], label="test, predicted limit", **_PREDICTED)
  for half in _halves(problem.weights[0]):
    weights.axhline(half, **_TRUE)
  weights.plot([], [], label="true means of w*", **_TRUE)
  for panel, title, y in (
    (losses, f"left: mean over {SEEDS} seeds", "squared error"),
    (weights, "right: one seed", "mean of 100 weights"),
  ):
    panel.axvline(UNTIE_STEP, color="0.6", linewidth=0.8)
    panel.set_title(f"Figure 2, {title}", fontsize=10)
    panel.set(xlabel="gradient steps", ylabel=y)
    panel.grid(alpha=0.25)
    panel.legend(fontsize=8)

  mean = finals["GD"].mean()
  ratio = finals["SWE"].mean() / mean
  residual = finals["SWE"] - ratio * finals["GD"]
  error = residual.std(ddof=1) / mean / np.sqrt(SEEDS)  # Of the ratio.
  # `path` is SWE's, the last of the loop.
  shared = path[UNTIE_STEP] - regression.shared_solution(problem)
  found += [
    claims.derived("Figure 2: test error ratio SWE / GD").close(
      predicted_ratio(NUM_LAYERS, NUM_SAMPLES), _SIGMAS * error, ratio
    ),
    claims.observed("Figure 2: share of seeds in which SWE beats GD").at_least(
      1.0, np.mean(finals["SWE"] < finals["GD"])
    ),
    claims.derived(
      "Figure 2: 100 shared steps reach the least-squares w_0: largest distance"
    ).at_most(1e-9, np.max(np.abs(shared))),
  ]
  return experiment.Outcome(found, drawing)
