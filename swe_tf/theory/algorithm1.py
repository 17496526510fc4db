"""Algorithm 1 of the paper in numpy, for any model given by its gradient.

The layers of a model lie along one axis of an array; every other axis is a
batch of independent problems, so one call trains all seeds at once. This is
the plain oracle of the theory. It is not for training networks: that is
`swe_tf.sharing`, which `optimizer_check` compares with this file.
"""

from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

# Combines the gradients of all layers, with numpy's `axis` and `keepdims`.
Aggregate = Callable[..., np.ndarray]


def iterates(
  weights: np.ndarray,
  gradient: Callable[[np.ndarray], np.ndarray],
  *,
  step_size: float | np.ndarray,
  num_steps: int,
  layer_axis: int,
  untie_step: int = 0,
  aggregate: Aggregate = np.mean,
) -> Iterator[np.ndarray]:
  """Yields the weights w(0), w(1), ..., w(T) of Algorithm 1.

  Args:
    weights: the initial weights w(0), equal along `layer_axis` if
      `untie_step` is positive.
    gradient: maps weights to the gradient of the loss, of the same shape.
    step_size: the learning rate; an array gives each problem its own.
    num_steps: T, the number of updates.
    layer_axis: the axis along which layers share.
    untie_step: tau; the first tau updates are shared. Zero is plain gradient
      descent.
    aggregate: what a shared update does with the gradients of the layers. The
      paper takes their mean (line 6 of Algorithm 1).

  Yields:
    T + 1 arrays of the shape of `weights`.
  """
  yield weights
  for step in range(num_steps):
    update = gradient(weights)
    if step < untie_step:
      update = aggregate(update, axis=layer_axis, keepdims=True)
    weights = weights - step_size * update
    yield weights
