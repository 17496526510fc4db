"""Algorithm 1 of the paper in numpy, for any model given by its gradient.

The layers of a model lie along one axis of an array; every other axis is a
batch of independent problems, so one call trains all seeds at once. This is
the plain oracle of the theory. It is not for training networks: that is
`swe_tf.sharing`.
"""

from collections.abc import Callable, Iterator
import dataclasses

import numpy as np

# Combines the gradients of all layers, with numpy's `axis` and `keepdims`.
Aggregate = Callable[..., np.ndarray]


@dataclasses.dataclass(frozen=True)
class Schedule:
  """The settings of Algorithm 1: plain gradient descent if tau is 0."""

  step_size: float | np.ndarray  # An array gives each problem its own.
  num_steps: int
  untie_step: int = 0  # tau
  aggregate: Aggregate = np.mean  # Line 6 of Algorithm 1.


def iterates(
  weights: np.ndarray,
  gradient: Callable[[np.ndarray], np.ndarray],
  schedule: Schedule,
  layer_axis: int = -1,
) -> Iterator[np.ndarray]:
  """Yields the weights w(0), w(1), ..., w(T); layers lie along `layer_axis`."""
  yield weights
  for step in range(schedule.num_steps):
    update = gradient(weights)
    if step < schedule.untie_step:
      update = schedule.aggregate(update, axis=layer_axis, keepdims=True)
    weights = weights - schedule.step_size * update
    yield weights
