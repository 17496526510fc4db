"""Figure 1's right half: what it shows is what was computed."""

import numpy as np

from experiments import figure1


def test_sharing_first_ends_nearer_to_the_truth_and_both_fit():
  ends = {tau: figure1.train(tau)[-1] for tau in (0, figure1.TAU)}
  for end in ends.values():
    assert abs(figure1.SAMPLE @ (end - figure1.TRUE)) < 1e-2
  shared = figure1.train(figure1.TAU)[: figure1.TAU + 1]
  np.testing.assert_array_equal(shared[:, 0], shared[:, 1])
  plain, swe = (
    np.linalg.norm(ends[tau] - figure1.TRUE) for tau in (0, figure1.TAU)
  )
  assert swe < 0.6 * plain
