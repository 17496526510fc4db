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
    path = list(
      algorithm1.iterates(
        np.zeros(5),
        gradient,
        step_size=0.1,
        num_steps=9,
        layer_axis=-1,
        untie_step=untie_step,
      )
    )
    self.assertLen(path, 10)
    np.testing.assert_allclose(
      path[-1], _literal(np.zeros(5), gradient, 0.1, 9, untie_step), rtol=1e-12
    )

  def test_layers_are_equal_until_untied(self):
    path = list(
      algorithm1.iterates(
        np.zeros(5),
        _quadratic(5),
        step_size=0.1,
        num_steps=6,
        layer_axis=-1,
        untie_step=3,
      )
    )
    spreads = [np.ptp(weights) for weights in path]
    np.testing.assert_array_equal(spreads[:4], 0)
    self.assertTrue(np.all(np.array(spreads[4:]) > 0.1))

  def test_problems_of_a_batch_are_independent(self):
    starts = np.random.default_rng(0).standard_normal((3, 1)) + np.zeros(4)
    settings = {"num_steps": 7, "layer_axis": -1, "untie_step": 2}
    *_, together = algorithm1.iterates(
      starts,
      _quadratic(4),
      step_size=np.array([[0.1], [0.2], [0.3]]),
      **settings,
    )
    for i, step_size in enumerate((0.1, 0.2, 0.3)):
      *_, alone = algorithm1.iterates(
        starts[i], _quadratic(4), step_size=step_size, **settings
      )
      np.testing.assert_allclose(together[i], alone, rtol=1e-12)


if __name__ == "__main__":
  absltest.main()
