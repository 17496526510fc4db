"""Proposition 1: sharing finds the common component within O(sqrt(L / n)).

The shared phase ends at the least-squares w_0 (`figure2` checks that training
gets there), so this file measures |w_hat - w_bar*| at that point. The exact
law is |w_hat - w_bar*| = |w~*| |t_n| / sqrt(n) with t_n Student's: it holds for
every n and L, also L > n, and shows which constant the O() hides.
"""

import numpy as np
from scipy import stats

from swe_tf.theory import claims as claims_lib
from swe_tf.theory import experiment
from swe_tf.theory import plots
from swe_tf.theory import regression

SEEDS = 500
FIXED_LAYERS = 64
SAMPLE_COUNTS = (16, 32, 64, 128, 256)
FIXED_SAMPLES = 32
LAYER_COUNTS = (16, 32, 64, 128, 256)

_SOURCE = "Proposition 1"
# Root mean squares of 500 draws scatter by 3 %: a slope over a factor of 8
# has a standard error near 0.02; n - 2 for n bends it by as much.
_SLOPE_TOLERANCE = 0.1


def distances(problem: regression.Problem) -> np.ndarray:
  """|w_hat - w_bar*| at the end of the shared phase: [seeds]."""
  offset = regression.shared_solution(problem) - problem.common
  return np.sqrt(problem.weights.shape[-1]) * np.abs(offset[..., 0])


def expected_distance(num_layers, num_samples):
  """The root mean square of the distance for w* ~ N(1, 1), exact for n > 2."""
  return np.sqrt((num_layers - 1) / (num_samples - 2))


def _root_mean_square(rng, num_layers, num_samples):
  problem = regression.Problem.draw(
    rng, seeds=SEEDS, num_layers=num_layers, num_samples=num_samples
  )
  return np.sqrt(np.mean(distances(problem) ** 2))


def _slope(x, y):
  return np.polyfit(np.log(x), np.log(y), 1)[0]


def _draw(against_n, against_layers, half):
  drawing, (left, right) = plots.panels(2)
  counts, layers = np.array(SAMPLE_COUNTS), np.array(LAYER_COUNTS)
  series = (
    (
      left,
      counts,
      against_n,
      expected_distance(FIXED_LAYERS, counts),
      f"L = {FIXED_LAYERS}",
    ),
    (
      right,
      layers,
      against_layers,
      expected_distance(layers, FIXED_SAMPLES),
      f"n = {FIXED_SAMPLES}",
    ),
    (right, layers, half, expected_distance(layers, layers / 2), "n = L / 2"),
  )
  for (panel, x, measured, predicted, name), colour in zip(
    series, plots.SEQUENCE
  ):
    panel.loglog(
      x,
      measured,
      "o",
      color=colour,
      label=f"{name}: fitted slope {_slope(x, measured):+.2f}",
    )
    panel.loglog(x, predicted, **plots.PREDICTED)
  left.axvspan(counts[0] / 1.2, FIXED_LAYERS, color="0.93", zorder=0)
  left.text(counts[0], against_n[-1], "L > n", color="0.4")
  for panel in (left, right):
    panel.plot([], [], label="predicted √((L − 1)/(n − 2))", **plots.PREDICTED)
  plots.label_ticks(left.xaxis, SAMPLE_COUNTS)
  plots.label_ticks(right.xaxis, LAYER_COUNTS)
  for panel in (left, right):
    plots.label_ticks(panel.yaxis, (0.5, 0.7, 1, 1.4, 2, 3, 4))
  rms = "root mean square of ‖ŵ − w̄*‖"
  plots.finish(left, "Proposition 1, against n", "training samples n", rms)
  plots.finish(right, "Proposition 1, against L", "coordinates L", rms)
  return drawing


def run(options: experiment.Options) -> experiment.Outcome:
  """Measures the distance on a grid of n and L."""
  rng = np.random.default_rng([options.seed, 3])
  against_n = np.array(
    [_root_mean_square(rng, FIXED_LAYERS, n) for n in SAMPLE_COUNTS]
  )
  against_layers = np.array(
    [_root_mean_square(rng, layers, FIXED_SAMPLES) for layers in LAYER_COUNTS]
  )
  half = np.array(
    [_root_mean_square(rng, layers, layers // 2) for layers in LAYER_COUNTS]
  )

  law = regression.Problem.draw(rng, seeds=4000, num_layers=48, num_samples=12)
  statistic = distances(law) * np.sqrt(12) / law.spread
  p_value = stats.kstest(
    statistic, lambda t: 2 * stats.t.cdf(t, df=12) - 1
  ).pvalue
  wide = regression.Problem.draw(
    rng, seeds=SEEDS, num_layers=FIXED_LAYERS, num_samples=64, spread=10.0
  )
  constant = np.sqrt(np.mean(distances(wide) ** 2) * 64 / FIXED_LAYERS)

  paper, derived = claims_lib.PAPER, claims_lib.DERIVED
  claims = [
    claims_lib.close(
      paper,
      _SOURCE,
      f"slope of ‖ŵ − w̄*‖ against n, L = {FIXED_LAYERS}, L > n and L < n",
      -0.5,
      _SLOPE_TOLERANCE,
      _slope(SAMPLE_COUNTS, against_n),
    ),
    claims_lib.close(
      paper,
      _SOURCE,
      f"slope of ‖ŵ − w̄*‖ against L, n = {FIXED_SAMPLES}, L < n and L > n",
      0.5,
      _SLOPE_TOLERANCE,
      _slope(LAYER_COUNTS, against_layers),
    ),
    claims_lib.close(
      paper,
      _SOURCE,
      "n = L / 2: ‖ŵ − w̄*‖ does not depend on L; slope for L >= 32",
      0.0,
      _SLOPE_TOLERANCE,
      _slope(LAYER_COUNTS[1:], half[1:]),
    ),
    claims_lib.at_least(
      derived,
      _SOURCE,
      "exact law ‖ŵ − w̄*‖ √n / ‖w̃*‖ ~ |Student t_n|: "
      "Kolmogorov-Smirnov p-value, 4000 draws",
      1e-3,
      p_value,
    ),
    claims_lib.close(
      claims_lib.SLIP,
      _SOURCE,
      "the constant is ‖w̃*‖ / √L, not free of "
      "w*: for w* ~ N(1, 10²), ‖ŵ − w̄*‖ √(n / L)",
      10.0,
      2.0,
      constant,
    ),
  ]
  return experiment.Outcome(
    claims, {"proposition1": _draw(against_n, against_layers, half)}
  )
