"""Models and closed forms against the slow way; how claims are judged."""

import json
import math
import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import claims
from swe_tf.theory import deep_linear
from swe_tf.theory import depth
from swe_tf.theory import regression


def _quadratic(layers):
  """The gradient of sum_i (i + 1) (w_i - i)^2 / 2, for a few layers."""
  scales = np.arange(1, layers + 1)
  return lambda w: scales * (w - np.arange(layers))


def _literal(weights, gradient, step_size, num_steps, untie_step):
  """Lines 3 to 8, for t = 1 to T, with tau shared updates."""
  weights = list(weights)
  for t in range(1, num_steps + 1):
    gradients = gradient(np.array(weights))
    for i in range(len(weights)):
      if t <= untie_step:
        weights[i] -= step_size * sum(gradients) / len(weights)
      else:
        weights[i] -= step_size * gradients[i]
  return weights


class IteratesTest(parameterized.TestCase):
  @parameterized.parameters(0, 1, 4, 9)
  def test_equals_the_lines_of_algorithm_1(self, untie_step):
    gradient = _quadratic(5)
    schedule = algorithm1.Schedule(0.1, 9, untie_step)
    path = list(algorithm1.iterates(np.zeros(5), gradient, schedule))
    self.assertLen(path, 10)
    literal = _literal(np.zeros(5), gradient, 0.1, 9, untie_step)
    np.testing.assert_allclose(path[-1], literal, rtol=1e-12)


def _numeric(loss, at):
  """The gradient of a loss by differences."""
  gradient = np.zeros_like(at)
  for index in np.ndindex(at.shape):
    step = np.zeros_like(at)
    step[index] = 1e-6
    gradient[index] = (loss(at + step) - loss(at - step)) / 2e-6
  return gradient


def _problem(seeds, num_layers, num_samples):
  shape = seeds, num_samples, num_layers
  return regression.Problem.draw(np.random.default_rng(0), shape)


def _interpolant(problem, start):
  """Where gradient descent ends: the interpolant that is nearest to `start`."""
  inputs, offset = problem.inputs, problem.weights - start
  nearest = np.linalg.pinv(inputs) @ (inputs @ offset[..., None])
  return start + nearest[..., 0]


class RegressionTest(parameterized.TestCase):
  def test_gradient_is_that_of_the_training_loss(self):
    problem = _problem(1, 6, 4)
    weights = np.linspace(-1, 1, 6)

    def loss(w):
      residual = problem.inputs[0] @ (w - problem.weights[0])
      return np.mean(residual**2) / 2

    gradient = regression.gradient(problem)(weights)[0]
    np.testing.assert_allclose(gradient, _numeric(loss, weights), atol=1e-8)

  def test_training_ends_at_the_shared_solution_and_the_interpolant(self):
    problem = _problem(2, 12, 6)
    path = regression.descend(problem, algorithm1.Schedule(0.2, 6000, 500))
    shared = regression.shared_solution(problem)
    np.testing.assert_allclose(path[500], shared + np.zeros(12), rtol=1e-9)
    end = _interpolant(problem, path[500])
    np.testing.assert_allclose(path[-1], end, atol=1e-8)

  @parameterized.parameters((8, 5), (20, 6), (7, 6))
  def test_expected_errors_are_exact(self, num_layers, num_samples):
    problem = _problem(40_000, num_layers, num_samples)
    shared = regression.shared_solution(problem)
    for start, expected_error in (
      (0, regression.expected_error_gd),
      (shared, regression.expected_error_swe),
    ):
      end = _interpolant(problem, start)
      errors = regression.test_error(end, problem)
      gap = abs(errors.mean() - expected_error(num_layers, num_samples))
      self.assertLess(gap, 4 * errors.std() / np.sqrt(errors.size))


class DeepLinearTest(parameterized.TestCase):
  def test_gradient_is_that_of_the_loss(self):
    rng = np.random.default_rng(0)
    network, target = rng.standard_normal((2, 4, 3, 3)), np.eye(3)
    numeric = _numeric(lambda w: np.sum(deep_linear.loss(w, target)), network)
    gradient = deep_linear.gradient(network, target)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-6)

  def test_targets_have_the_spectrum_asked_for(self):
    targets = deep_linear.positive_definite(
      np.random.default_rng(0), 5, 4, low=0.3, high=2.0
    )
    eigenvalues = np.linalg.eigvalsh(targets)
    np.testing.assert_allclose(eigenvalues[:, 0], 0.3)
    np.testing.assert_allclose(eigenvalues[:, -1], 2.0)

  @parameterized.parameters(np.mean, None)
  def test_flow_is_the_limit_of_small_steps(self, aggregate):
    target = np.eye(2) + 0.3 * np.random.default_rng(0).standard_normal((2, 2))
    start = deep_linear.identity(target, 3)
    schedule = algorithm1.Schedule(1e-4, 5000, 5000 if aggregate else 0)
    *_, stepped = deep_linear.descend(start, target, schedule)
    flowed = deep_linear.flow(start, target, np.array([0, 0.5]), aggregate)
    np.testing.assert_allclose(flowed[-1], stepped, atol=1e-4)

  def test_a_margin_sees_a_rate_a_late_violation_and_a_nan(self):
    times = np.linspace(0, 5, 11)
    for rate in (0.5, 1.0, 3.0):
      losses = np.exp(-rate * times[:, None])
      margin = deep_linear.decay_margin(losses, 1, times)
      self.assertAlmostEqual(margin, rate)
    losses = np.exp(-10.0 * np.arange(11)[:, None])
    self.assertGreaterEqual(deep_linear.decay_margin(losses, 10), 1)
    late, lost = losses.copy(), losses.copy()
    late[-1], lost[-1] = 1e-3, np.nan
    self.assertLess(deep_linear.decay_margin(late, 10), 1)
    self.assertTrue(np.isnan(deep_linear.decay_margin(lost, 10)))


class SpectralTest(parameterized.TestCase):
  @parameterized.parameters(
    (depth.SHARING, deep_linear.identity),
    (depth.ZAS, deep_linear.zero_asymmetric),
  )
  def test_steps_equal_those_of_matrices(self, start, initial):
    target = deep_linear.positive_definite(
      np.random.default_rng(0), 1, 3, low=0.6, high=1.8
    )
    schedule = algorithm1.Schedule(0.02, 1500, 1500 if start else 0)
    path = deep_linear.descend(initial(target, 5), target, schedule)
    losses = deep_linear.loss(np.array(list(path)), target)[:, 0]
    expected = np.flatnonzero(losses <= 1e-6 * losses[0])[0]
    eigenvalues = np.linalg.eigvalsh(target[0])
    steps = depth.steps_to_train(eigenvalues, start, 5, 0.02, limit=1500)
    self.assertEqual(steps, expected)

  @parameterized.parameters(depth.SHARING, depth.ZAS)
  def test_time_is_the_limit_of_small_steps(self, start):
    target = np.array([0.5, 1.5])
    steps = depth.steps_to_train(target, start, 6, 1e-4, 10**5, 1e-3)
    time = depth.time_to_train(target, start, 6, 1e-3)
    self.assertAlmostEqual(time, 1e-4 * steps, delta=2e-3)

  def test_steps_that_diverge_are_infinite(self):
    steps = depth.steps_to_train(
      np.array([2.0]), depth.SHARING, 8, np.array([0.01, 1.0]), limit=500
    )
    self.assertTrue(np.isfinite(steps[0]))
    self.assertTrue(np.isinf(steps[1]))


_SAID = claims.paper("Lemma: |W|")


class ClaimsTest(absltest.TestCase):
  def test_bounds_can_fail(self):
    for kind, bounds, measured, holds in (
      ("at_most", [1.0], 1.0, True),
      ("at_most", [1.0], 1.01, False),
      ("at_least", [1.0], 1.0, True),
      ("at_least", [1.0], 0.99, False),
      ("close", [1.0, 0.1], 1.05, True),
      ("close", [1.0, 0.1], 1.2, False),
      # A run that diverged never passes.
      *(("at_most", [1.0], x, False) for x in (math.nan, math.inf)),
      *(("close", [1.0, 1.0], x, False) for x in (math.nan, math.inf)),
      ("at_least", [1.0], math.nan, False),
      ("close", [1.0, math.nan], 1.0, False),
    ):
      self.assertEqual(getattr(_SAID, kind)(*bounds, measured).holds, holds)

  def test_only_what_is_observed_may_fail(self):
    for kind in ("paper", "derived", "slip", "observed"):
      claim = getattr(claims, kind)("Lemma: |W|").at_most(1, 0)
      self.assertEqual(claim.kind, kind)
      self.assertEqual(claim.proved, kind != "observed")

  def test_files(self):
    rows = [
      _SAID.at_most(1.0, 0.5),
      claims.observed("Figure 2: ratio").close(0.5, 0.1, math.inf),
    ]
    directory = pathlib.Path(self.create_tempdir().full_path)
    claims.write(rows, directory)

    def refuse(constant):
      raise ValueError(f"{constant} is not JSON")

    text = (directory / "claims.json").read_text(encoding="utf-8")
    read = json.loads(text, parse_constant=refuse)
    wanted = dict(source="Lemma", claim="|W|", predicted="<= 1", measured=0.5)
    wanted |= dict(holds=True, kind="paper", proved=True)
    self.assertEqual(read[0], wanted)
    self.assertEqual((read[1]["measured"], read[1]["holds"]), ("inf", False))
    table = (directory / "claims.md").read_text(encoding="utf-8").splitlines()
    self.assertLen(table, 4)
    self.assertIn(r"\|W\|", table[2])
