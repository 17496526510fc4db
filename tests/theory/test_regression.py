"""The closed forms of linear regression against the obvious slow way."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import figure2
from swe_tf.theory import proposition1
from swe_tf.theory import regression


def _problem(seeds, num_layers, num_samples):
  shape = seeds, num_samples, num_layers
  return regression.Problem.draw(np.random.default_rng(0), shape)


class RegressionTest(parameterized.TestCase):
  def test_gradient_is_that_of_the_training_loss(self):
    problem = _problem(1, 6, 4)
    weights = np.linspace(-1, 1, 6)

    def loss(w):
      residual = problem.inputs[0] @ (w - problem.weights[0])
      return np.mean(residual**2) / 2

    numeric = [
      (loss(weights + h) - loss(weights - h)) / 2e-6 for h in 1e-6 * np.eye(6)
    ]
    gradient = regression.gradient(problem)(weights)[0]
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)

  def test_shared_solution_is_least_squares(self):
    problem = _problem(3, 7, 5)
    for i, solution in enumerate(regression.shared_solution(problem)):
      expected, *_ = np.linalg.lstsq(
        problem.inputs[i].sum(axis=1, keepdims=True),
        problem.inputs[i] @ problem.weights[i],
      )
      np.testing.assert_allclose(solution, expected, rtol=1e-10)

  def test_training_ends_at_the_shared_solution_and_the_interpolant(self):
    problem = _problem(2, 12, 6)
    path = regression.descend(problem, algorithm1.Schedule(0.2, 6000, 500))
    shared = regression.shared_solution(problem)
    np.testing.assert_allclose(path[500], shared + np.zeros(12), rtol=1e-9)
    np.testing.assert_allclose(
      path[-1], regression.interpolant(problem, path[500]), atol=1e-8
    )

  @parameterized.parameters((8, 5), (20, 6), (7, 6))
  def test_expected_errors_are_exact(self, num_layers, num_samples):
    problem = _problem(40_000, num_layers, num_samples)
    shared = regression.shared_solution(problem)
    for start, expected_error in (
      (0, regression.expected_error_gd),
      (shared, regression.expected_error_swe),
    ):
      end = regression.interpolant(problem, start)
      errors = regression.test_error(end, problem)
      gap = abs(errors.mean() - expected_error(num_layers, num_samples))
      self.assertLess(gap, 4 * errors.std() / np.sqrt(errors.size))

  def test_ratio_tends_to_one_half(self):
    self.assertAlmostEqual(
      figure2.predicted_ratio(200, 120), 199 * 119 / (2 * 198 * 118)
    )
    self.assertAlmostEqual(figure2.predicted_ratio(10**6, 10**5), 0.5, places=4)

  def test_distance_is_that_of_the_projection(self):
    problem = _problem(3, 9, 4)
    for i, distance in enumerate(proposition1.distances(problem)):
      trained = np.full(9, regression.shared_solution(problem)[i, 0])
      common = np.full(9, problem.weights[i].mean())
      self.assertAlmostEqual(distance, np.linalg.norm(trained - common))


if __name__ == "__main__":
  absltest.main()
