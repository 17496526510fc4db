"""The pieces of the proofs against the obvious slow way."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import control
from swe_tf.theory import deep_linear
from swe_tf.theory import proposition1
from swe_tf.theory import regression
from swe_tf.theory import theorem2
from swe_tf.theory import theorem3


class ProofsTest(parameterized.TestCase):
  def test_printed_solution_is_least_squares(self):
    problem = regression.Problem.draw(np.random.default_rng(0), (4, 5, 9))
    np.testing.assert_allclose(
      proposition1.printed_solution(problem),
      regression.shared_solution(problem),
      rtol=1e-10,
    )

  def test_parts_are_squared_distances_of_projections(self):
    problem = regression.Problem.draw(np.random.default_rng(0), (1, 3, 6))
    weights = np.linspace(-1, 2, 6)
    ones = np.full((6, 6), 1 / 6)
    common, rest = proposition1.parts(weights[None], problem)
    offset = weights - problem.weights[0]
    self.assertAlmostEqual(common[0], np.sum((ones @ offset) ** 2))
    self.assertAlmostEqual(rest[0], np.sum((offset - ones @ offset) ** 2))

  @parameterized.parameters(2, 5)
  def test_gamma_gradient_is_that_of_the_loss(self, num_layers):
    rng = np.random.default_rng(0)
    gamma, target = rng.standard_normal((2, 3, 3))
    gradient = theorem2.gamma_gradient(gamma, target, num_layers)

    def loss(matrix):
      network = theorem2.layers(matrix, num_layers)
      return deep_linear.loss(network, target)

    for index in np.ndindex(3, 3):
      step = np.zeros((3, 3))
      step[index] = 1e-6
      numeric = (loss(gamma + step) - loss(gamma - step)) / 2e-6
      self.assertAlmostEqual(gradient[index], numeric, delta=1e-6)

  def test_imbalance_of_unequal_layers(self):
    layers = np.stack([np.eye(2), 2 * np.eye(2), 2 * np.eye(2)])
    np.testing.assert_allclose(theorem2.imbalance(layers), 3 * np.sqrt(2))

  def test_parts_of_a_step_are_those_of_the_binomial(self):
    change, linear, rest = theorem3.expand_power(
      np.array([[2.0]]), np.array([[0.1]]), 3
    )
    self.assertAlmostEqual(change[0, 0], 2.1**3 - 2**3)
    self.assertAlmostEqual(linear[0, 0], 3 * 2**2 * 0.1)
    self.assertAlmostEqual(rest[0, 0], 3 * 2 * 0.1**2 + 0.1**3)

  def test_steps_to_train(self):
    losses = np.array([[1.0, 2.0, 1.0], [0.5, 1e-6, 0.1], [0.0, 0.0, 0.1]])
    np.testing.assert_array_equal(
      control.steps_to_train(losses), [2, 1, np.inf]
    )


if __name__ == "__main__":
  absltest.main()
