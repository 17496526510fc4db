"""Curves of each layer: how far it moved, and how far it is from the others.

While weights are shared, the curves of all layers coincide; after untying they
part. They are computed from the weights, on the host, and only when a summary
is written (`trainer.summary_interval`), so they add nothing to a step. They
keep a copy of the blocks' weights in the host's memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from swe_tf.sharing import plan as plan_lib

UPDATE, DISTANCE = "layers/update", "layers/distance"


def _norm(arrays: Sequence[np.ndarray]) -> float:
  return float(np.sqrt(sum(np.vdot(a, a) for a in arrays)))


class LayerCurves:
  """Measures the layers at each summary."""

  def __init__(self, unit_size: int):
    """Initializes the curves.

    Args:
      unit_size: The number of layers in a unit, which determines the layers to
        compare.
    """
    self._unit_size = unit_size
    self._before: dict[str, np.ndarray] = {}

  def write(self, layers: Sequence[Any], step: int) -> None:
    """Writes scalars to the default summary writer.

    Args:
      layers: The blocks of the current model.
      step: The step.
    """
    for tag, value in self.measure(layers).items():
      tf.summary.scalar(tag, value, step=step)

  def measure(self, layers: Sequence[Any]) -> dict[str, float]:
    """Returns the scalars by tag; runs eagerly.

    `layers/update/I` is the norm of the change of layer I since the last call,
    `layers/distance/I` its distance from the mean of the layers at the same
    place in their units. Both are relative to the norm of the layer's weights.
    A new layer has no update yet.
    """
    variables = [layer.trainable_variables for layer in layers]
    weights = [[v.numpy() for v in each] for each in variables]
    keys = [[plan_lib.variable_key(v) for v in each] for each in variables]
    curves = {}
    for i, (mine, names) in enumerate(zip(weights, keys)):
      norm = _norm(mine) or 1.0
      if all(name in self._before for name in names):
        moved = [w - self._before[n] for w, n in zip(mine, names)]
        curves[f"{UPDATE}/{i:02d}"] = _norm(moved) / norm
      alike = [
        each
        for each in weights[i % self._unit_size :: self._unit_size]
        if [w.shape for w in each] == [w.shape for w in mine]
      ]
      apart = [
        w - np.mean([each[k] for each in alike], 0) for k, w in enumerate(mine)
      ]
      curves[f"{DISTANCE}/{i:02d}"] = _norm(apart) / norm
    self._before = {
      name: weight
      for names, mine in zip(keys, weights)
      for name, weight in zip(names, mine)
    }
    return curves
