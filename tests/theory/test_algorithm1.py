"""Algorithm 1 against its lines, written out one weight at a time."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import algorithm1


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
    np.testing.assert_allclose(
      path[-1], _literal(np.zeros(5), gradient, 0.1, 9, untie_step), rtol=1e-12
    )

  def test_layers_are_equal_until_untied(self):
    schedule = algorithm1.Schedule(0.1, num_steps=6, untie_step=3)
    path = algorithm1.iterates(np.zeros(5), _quadratic(5), schedule)
    spreads = [np.ptp(weights) for weights in path]
    np.testing.assert_array_equal(spreads[:4], 0)
    self.assertTrue(np.all(np.array(spreads[4:]) > 0.1))

  def test_problems_of_a_batch_are_independent(self):
    starts = np.random.default_rng(0).standard_normal((3, 1)) + np.zeros(4)
    step_sizes = np.array([[0.1], [0.2], [0.3]])

    def trained(start, step_size):
      schedule = algorithm1.Schedule(step_size, num_steps=7, untie_step=2)
      *_, weights = algorithm1.iterates(start, _quadratic(4), schedule)
      return weights

    np.testing.assert_allclose(
      trained(starts, step_sizes),
      [trained(*problem) for problem in zip(starts, step_sizes)],
      rtol=1e-12,
    )


if __name__ == "__main__":
  absltest.main()
