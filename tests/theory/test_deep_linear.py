"""Deep linear networks against finite differences and slower simulations."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import deep_linear
from swe_tf.theory import spectral


class DeepLinearTest(parameterized.TestCase):
  def test_product_multiplies_the_last_layer_from_the_left(self):
    layers = np.random.default_rng(0).standard_normal((3, 2, 2))
    np.testing.assert_allclose(
      deep_linear.product(layers), layers[2] @ layers[1] @ layers[0]
    )

  def test_gradient_is_that_of_the_loss(self):
    rng = np.random.default_rng(0)
    network, target = rng.standard_normal((2, 4, 3, 3)), np.eye(3)
    gradient = deep_linear.gradient(network, target)
    for index in np.ndindex(2, 4, 3, 3):
      step = np.zeros_like(network)
      step[index] = 1e-6
      numeric = (
        np.sum(
          deep_linear.loss(network + step, target)
          - deep_linear.loss(network - step, target)
        )
        / 2e-6
      )
      self.assertAlmostEqual(gradient[index], numeric, delta=1e-6)

  def test_zas_is_identity_but_for_the_last_layer(self):
    network = deep_linear.zero_asymmetric(np.zeros((2, 3, 3)), 4)
    np.testing.assert_array_equal(
      network[:, :-1], np.tile(np.eye(3), (2, 3, 1, 1))
    )
    np.testing.assert_array_equal(network[:, -1], 0)

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

  def test_a_margin_tells_whether_a_bound_holds(self):
    times = np.linspace(0, 5, 11)
    for rate in (0.5, 1.0, 3.0):
      losses = np.exp(-rate * times[:, None])
      margin = deep_linear.decay_margin(losses, 1, times)
      self.assertAlmostEqual(margin, rate)

  def test_a_margin_sees_a_late_violation_and_a_nan(self):
    losses = np.exp(-10.0 * np.arange(11)[:, None])
    self.assertGreaterEqual(deep_linear.decay_margin(losses, 10), 1)
    late, lost = losses.copy(), losses.copy()
    late[-1], lost[-1] = 1e-3, np.nan
    self.assertLess(deep_linear.decay_margin(late, 10), 1)
    self.assertTrue(np.isnan(deep_linear.decay_margin(lost, 10)))


class SpectralTest(parameterized.TestCase):
  @parameterized.parameters(
    (spectral.SHARING, deep_linear.identity),
    (spectral.ZAS, deep_linear.zero_asymmetric),
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
    steps = spectral.steps_to_train(eigenvalues, start, 5, 0.02, limit=1500)
    self.assertEqual(steps, expected)

  @parameterized.parameters(spectral.SHARING, spectral.ZAS)
  def test_time_is_the_limit_of_small_steps(self, start):
    target = np.array([0.5, 1.5])
    steps = spectral.steps_to_train(target, start, 6, 1e-4, 10**5, 1e-3)
    time = spectral.time_to_train(target, start, 6, 1e-3)
    self.assertAlmostEqual(time, 1e-4 * steps, delta=2e-3)

  def test_steps_that_diverge_are_infinite(self):
    steps = spectral.steps_to_train(
      np.array([2.0]), spectral.SHARING, 8, np.array([0.01, 1.0]), limit=500
    )
    self.assertTrue(np.isfinite(steps[0]))
    self.assertTrue(np.isinf(steps[1]))


if __name__ == "__main__":
  absltest.main()
