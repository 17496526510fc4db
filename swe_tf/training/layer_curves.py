"""Curves of the layers: how far they moved, and how far they are apart.

They are computed from the weights, on the host, and only when a summary is
written (`trainer.summary_interval`), so they add nothing to a step. They keep a
copy of the blocks' weights in the host's memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from swe_tf.sharing import plan as plan_lib


def _norm(arrays: Sequence[np.ndarray]) -> float:
  return float(np.sqrt(sum(np.vdot(a, a) for a in arrays)))


class LayerCurves:
  """Measures the layers at each summary; those of a unit are not compared."""

  def __init__(self, unit_size: int):
    self._unit_size = unit_size
    self._before: dict[str, np.ndarray] = {}

  def write(self, layers: Sequence[Any], step: int) -> None:
    """Writes scalars to the default summary writer; runs eagerly.

    `layers/update/I` is the norm of the change of layer I since the last call,
    `layers/distance/I` its distance from the mean of the layers at the same
    position in their units. Both are relative to the norm of the layer.
    """
    variables = [layer.trainable_variables for layer in layers]
    weights = [[v.numpy() for v in each] for each in variables]
    keys = [[plan_lib.variable_key(v) for v in each] for each in variables]
    curves = {}
    for i, (mine, names) in enumerate(zip(weights, keys)):
      norm = _norm(mine) or 1.0
      if all(name in self._before for name in names):
        moved = [w - self._before[n] for w, n in zip(mine, names)]
        curves[f"layers/update/{i:02d}"] = _norm(moved) / norm
      alike = [
        each
        for each in weights[i % self._unit_size :: self._unit_size]
        if [w.shape for w in each] == [w.shape for w in mine]
      ]
      apart = [
        w - np.mean([each[k] for each in alike], 0) for k, w in enumerate(mine)
      ]
      curves[f"layers/distance/{i:02d}"] = _norm(apart) / norm
    self._before = dict(zip(sum(keys, []), sum(weights, [])))
    for tag, value in curves.items():
      tf.summary.scalar(tag, value, step=step)


def distance_from_mean(plan: plan_lib.SharingPlan) -> tf.Tensor:
  """Returns the root-mean-square distance of the units from their mean.

  It is relative to the norm of the mean: 0 while shared, about 1 if independent
  weights have a mean much smaller than themselves. Runs eagerly.
  """
  return _relative_distance(
    [[tf.convert_to_tensor(v) for v in tie] for tie in plan.whole_ties]
  )


@tf.function(autograph=False)
def _relative_distance(ties):
  apart, common = [], []
  for tie in ties:
    mean = tf.add_n(tie) / len(tie)
    common.append(tf.nn.l2_loss(mean))
    apart.append(tf.add_n([tf.nn.l2_loss(w - mean) for w in tie]) / len(tie))
  return tf.sqrt(tf.math.divide_no_nan(tf.add_n(apart), tf.add_n(common)))
