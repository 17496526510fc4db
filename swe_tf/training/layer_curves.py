"""Curves of the layers: how far they are apart.

They are computed from the weights between two loops, so they add nothing to a
step: `write` when a summary is written, `distance_from_mean` after every loop.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from swe_tf.sharing import plan as plan_lib


def _norm(arrays: Sequence[np.ndarray]) -> float:
  return float(np.sqrt(sum(np.vdot(a, a) for a in arrays)))


def write(layers: Sequence[Any], unit_size: int, step: int) -> None:
  """Writes scalars to the default summary writer; runs eagerly.

  `layers/distance/I` is the distance of layer I from the mean of the layers at
  the same position in their units, relative to the norm of the layer.
  """
  weights = [[v.numpy() for v in x.trainable_variables] for x in layers]
  for i, mine in enumerate(weights):
    alike = [
      each
      for each in weights[i % unit_size :: unit_size]
      if [w.shape for w in each] == [w.shape for w in mine]
    ]
    apart = [
      w - np.mean([each[k] for each in alike], 0) for k, w in enumerate(mine)
    ]
    distance = _norm(apart) / (_norm(mine) or 1.0)
    tf.summary.scalar(f"layers/distance/{i:02d}", distance, step=step)


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
