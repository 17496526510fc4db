"""Algorithm 1 of the paper in numpy, for any model given by its gradient.

The layers of a model lie along one axis of an array; every other axis is a
batch of independent problems, so one call trains all seeds at once. This is
the plain oracle of the theory. It is not for training networks: that is
`swe_tf.sharing`, which `optimizer_check` compares with this file.
"""

from collections.abc import Callable, Iterator
import dataclasses

import numpy as np

# Combines the gradients of all layers, with numpy's `axis` and `keepdims`.
Aggregate = Callable[..., np.ndarray]


@dataclasses.dataclass(frozen=True)
class Schedule:
  """The settings of Algorithm 1.

  Attributes:
    step_size: the learning rate; an array gives each problem its own.
    num_steps: T, the number of updates.
    untie_step: tau; the first tau updates are shared. Zero is plain gradient
      descent.
    aggregate: what a shared update does with the gradients of the layers. The
      paper takes their mean (line 6 of Algorithm 1).
  """

  step_size: float | np.ndarray
  num_steps: int
  untie_step: int = 0
  aggregate: Aggregate = np.mean


def iterates(
  weights: np.ndarray,
  gradient: Callable[[np.ndarray], np.ndarray],
  schedule: Schedule,
  layer_axis: int = -1,
) -> Iterator[np.ndarray]:
  """Yields the weights w(0), w(1), ..., w(T) of Algorithm 1.

  Args:
    weights: w(0), equal along `layer_axis` if any update is shared.
    gradient: maps weights to the gradient of the loss, of the same shape.
    schedule: the settings.
    layer_axis: the axis along which layers share.

  Yields:
    T + 1 arrays of the shape of `weights`.
  """
  yield weights
  for step in range(schedule.num_steps):
    update = gradient(weights)
    if step < schedule.untie_step:
      update = schedule.aggregate(update, axis=layer_axis, keepdims=True)
    weights = weights - schedule.step_size * update
    yield weights
