"""Deep linear networks against finite differences and slower simulations."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import algorithm1
from swe_tf.theory import deep_linear
from swe_tf.theory import spectral
from swe_tf.theory import theorem3


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
    *_, stepped = algorithm1.iterates(
      start,
      lambda w: deep_linear.gradient(w, target),
      step_size=1e-4,
      num_steps=5000,
      layer_axis=deep_linear.LAYER_AXIS,
      untie_step=0 if aggregate is None else 5000,
    )
    flowed = deep_linear.flow(start, target, np.array([0, 0.5]), aggregate)
    np.testing.assert_allclose(flowed[-1], stepped, atol=1e-4)

  def test_a_margin_tells_whether_a_bound_holds(self):
    exponents = np.linspace(0, 5, 11)[:, None]
    for rate in (0.5, 1.0, 3.0):
      self.assertAlmostEqual(
        deep_linear.decay_margin(np.exp(-rate * exponents), exponents), rate
      )

  def test_a_margin_sees_a_late_violation_and_a_nan(self):
    exponents = np.linspace(0, 100, 11)[:, None]
    losses = np.exp(-exponents)
    self.assertGreaterEqual(deep_linear.decay_margin(losses, exponents), 1)
    late, lost = losses.copy(), losses.copy()
    late[-1], lost[-1] = 1e-3, np.nan
    self.assertLess(deep_linear.decay_margin(late, exponents), 1)
    self.assertTrue(np.isnan(deep_linear.decay_margin(lost, exponents)))


class SpectralTest(parameterized.TestCase):
  @parameterized.parameters(
    (spectral.SHARING, deep_linear.identity),
    (spectral.ZAS, deep_linear.zero_asymmetric),
  )
  def test_steps_equal_those_of_matrices(self, start, initial):
    target = deep_linear.positive_definite(
      np.random.default_rng(0), 1, 3, low=0.6, high=1.8
    )
    losses, _ = theorem3.descend(
      initial(target, 5),
      target,
      np.array([0.02]),
      1500,
      np.mean if start else None,
    )
    expected = np.flatnonzero(losses[:, 0] <= 1e-6 * losses[0, 0])[0]
    steps = spectral.steps_to(
      1e-6, 5, np.linalg.eigvalsh(target[0]), start, np.array(0.02), limit=1500
    )
    self.assertEqual(steps, expected)

  @parameterized.parameters(spectral.SHARING, spectral.ZAS)
  def test_time_is_the_limit_of_small_steps(self, start):
    target = np.array([0.5, 1.5])
    steps = spectral.steps_to(
      1e-3, 6, target, start, np.array(1e-4), limit=10**5
    )
    self.assertAlmostEqual(
      spectral.time_to(1e-3, 6, target, start), 1e-4 * steps, delta=2e-3
    )

  def test_steps_that_diverge_are_infinite(self):
    steps = spectral.steps_to(
      1e-6,
      8,
      np.array([2.0]),
      spectral.SHARING,
      np.array([0.01, 1.0]),
      limit=500,
    )
    self.assertTrue(np.isfinite(steps[0]))
    self.assertTrue(np.isinf(steps[1]))


if __name__ == "__main__":
  absltest.main()
