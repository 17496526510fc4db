"""How far the layers have moved apart after untying.

Runs eagerly between two compiled loops; the cosine of the gradients while
shared is measured inside the step (`cosines.py`).
"""

import tensorflow as tf

from swe_tf.sharing import plan as plan_lib


@tf.function(autograph=False)
def _relative_distance(ties):
  """Returns sqrt(mean_b |w_b - mean|^2) / |mean| over all ties together."""
  apart, common = [], []
  for tie in ties:
    mean = tf.add_n(tie) / len(tie)
    common.append(tf.nn.l2_loss(mean))
    apart.append(tf.add_n([tf.nn.l2_loss(w - mean) for w in tie]) / len(tie))
  return tf.sqrt(tf.math.divide_no_nan(tf.add_n(apart), tf.add_n(common)))


def distance_from_mean(plan: plan_lib.SharingPlan) -> tf.Tensor:
  """Returns the root-mean-square distance of the units from their mean.

  Args:
    plan: The ties.

  Returns:
    A scalar, relative to the norm of the mean: 0 while shared, about 1 for
    independent weights with a mean much smaller than themselves.
  """
  return _relative_distance(
    [[tf.convert_to_tensor(v) for v in tie] for tie in plan.whole_ties]
  )
