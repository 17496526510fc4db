"""The optimizer that trains BERT runs the paper's examples."""

import dataclasses
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import experiment
from swe_tf.theory import figure2
from swe_tf.theory import optimizer_check

_OPTIONS = experiment.Options(seed=1)
_SMALL = {
  "NUM_LAYERS": 12,
  "NUM_SAMPLES": 8,
  "NUM_STEPS": 40,
  "UNTIE_STEP": 15,
  "STEP_SIZE": 0.05,
}


class OptimizerCheckTest(parameterized.TestCase):
  @parameterized.parameters(
    optimizer_check.regression_gap, optimizer_check.deep_linear_gap
  )
  def test_equals_algorithm_1_and_not_its_sum(self, gap):
    with mock.patch.multiple(figure2, **_SMALL):
      self.assertLess(gap(_OPTIONS), 1e-9)
      summed = dataclasses.replace(_OPTIONS, aggregate=np.sum)
      self.assertGreater(gap(summed), 1e-3)

  @parameterized.parameters(14, 16)
  def test_sees_an_untie_step_that_is_off_by_one(self, untie_step):
    train = optimizer_check.train

    def off_by_one(layers, loss, schedule):
      other = dataclasses.replace(schedule, untie_step=untie_step)
      return train(layers, loss, other)

    with (
      mock.patch.multiple(figure2, **_SMALL),
      mock.patch.object(optimizer_check, "train", off_by_one),
    ):
      self.assertGreater(optimizer_check.regression_gap(_OPTIONS), 1e-3)


if __name__ == "__main__":
  absltest.main()
