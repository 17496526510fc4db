"""Cosines of gradients against numpy; `test_optimizer.py` has them in steps."""

import numpy as np
import tensorflow as tf

from swe_tf.sharing import cosines


class CosinesTest(tf.test.TestCase):
  def test_the_mean_over_all_pairs(self):
    rng = np.random.default_rng(0)
    kernels, biases = rng.normal(size=[2, 5, 3]).astype(np.float32)
    whole = np.concatenate([kernels, biases], axis=1)
    units = whole / np.linalg.norm(whole, axis=1, keepdims=True)
    above = np.triu_indices(5, k=1)
    self.assertAllClose(
      cosines.mean_pairwise(
        [list(map(tf.constant, kernels)), list(map(tf.constant, biases))]
      ),
      np.mean((units @ units.T)[above]),
    )

  def test_a_gradient_that_is_zero_or_absent_has_no_direction(self):
    one, minus = tf.constant([1.0, 0.0]), tf.constant([-2.0, 0.0])
    zero = tf.zeros([2])
    rows = [[one, minus, zero, one], [one, None, zero, one]]
    self.assertAllClose(cosines.adjacent(rows), [-1 / np.sqrt(2.0), 0.0, 0.0])
