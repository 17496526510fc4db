"""How much the units' gradients agree, measured in the step that computes them.

A cosine is taken from each replica's own gradients, before the all-reduce: the
all-reduced gradient of a single layer never exists while shared.

Not for: deciding when to untie (`schedule.py`).
"""

from collections.abc import Sequence

import tensorflow as tf

from swe_tf.sharing import gradients
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule


class CosineMeter:
  """Measures the cosines in the last step of every interval.

  Its values are not training state, so checkpoints leave them out.
  """

  def __init__(self, num_units: int, interval: int):
    """Initializes the meter, with NaN until the first measurement.

    Args:
      num_units: The number of units, at least 2.
      interval: The number of updates between two measurements.
    """
    self._interval = interval
    self._mean = self._measurement([], "gradient_cosine")
    self._adjacent = self._measurement([num_units - 1], "adjacent_cosines")

  def _measurement(self, shape: Sequence[int], name: str) -> tf.Variable:
    with tf.init_scope():
      return tf.Variable(
        tf.fill(shape, float("nan")),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
        name=name,
      )

  def read(self) -> schedule.GradientCosines:
    """Returns the last measurement, averaged over the replicas."""
    return schedule.GradientCosines(
      float(self._mean.numpy()), tuple(self._adjacent.numpy().tolist())
    )

  def measure(
    self,
    step: tf.Tensor,
    grads_and_vars: gradients.GradsAndVars,
    means: gradients.GradsAndVars,
    plan: plan_lib.SharingPlan,
    index: tf.Tensor | None = None,
  ) -> None:
    """Measures if `step` is due.

    This waits for the means. A sum reuses the memory of a gradient that nothing
    else still has to read. If measuring ran at the same time, which gradient
    that is would depend on timing, and so would the order of the sum and the
    last bit of the weights.

    Args:
      step: Which update this is, counted from 1.
      grads_and_vars: The pairs of all variables, of this replica.
      means: The pairs of stems and untied variables.
      plan: The ties. All units are compared, whatever the groups.
      index: Which micro-batch the gradients come from, counted from 0; the
        cosines are averaged over micro-batches. None for the whole batch.
    """

    def keep(variable, value):
      if index is not None:
        count = tf.cast(index + 1, value.dtype)
        average = variable + (value - variable) / count
        value = tf.where(index > 0, average, value)
      variable.assign(value)

    def measure_now():
      units = gradients.gradients_of(grads_and_vars, plan.whole_ties)
      keep(self._mean, mean_pairwise(units))
      keep(self._adjacent, adjacent(units))

    stems = set(map(plan_lib.variable_key, plan.stems))
    with tf.control_dependencies(
      [
        g
        for g, v in means
        if g is not None and plan_lib.variable_key(v) in stems
      ]
    ):
      is_due = tf.equal(step % self._interval, 0)
    tf.cond(is_due, measure_now, lambda: None)


def _inverse_norms(tied_grads) -> list[tf.Tensor]:
  """Returns 1 / |g_b| of each unit's whole gradient; 0 for a zero gradient."""
  return [
    tf.math.reciprocal_no_nan(
      tf.linalg.global_norm([grads[b] for grads in tied_grads])
    )
    for b in range(len(tied_grads[0]))
  ]


def mean_pairwise(
  tied_grads: Sequence[Sequence[tf.Tensor]],
) -> tf.Tensor:
  """Returns the mean cosine over all pairs of units' whole gradients.

  With unit vectors u_b = g_b / |g_b|, the sum over all ordered pairs of
  distinct units is |sum_b u_b|^2 - B, so no pair is ever formed.

  Args:
    tied_grads: For each role, the gradients of the B units' variables.

  Returns:
    A scalar in [-1/(B-1), 1].
  """
  num_units = len(tied_grads[0])
  inverse = _inverse_norms(tied_grads)
  sum_of_units = [
    tf.add_n([g * inverse[b] for b, g in enumerate(grads) if g is not None])
    for grads in tied_grads
    if any(g is not None for g in grads)
  ]
  square = tf.square(tf.linalg.global_norm(sum_of_units))
  return (square - num_units) / (num_units * (num_units - 1.0))


def adjacent(tied_grads: Sequence[Sequence[tf.Tensor]]) -> tf.Tensor:
  """Returns the cosine between the whole gradients of each unit and the next.

  Args:
    tied_grads: For each role, the gradients of the B units' variables.

  Returns:
    A vector of B - 1 cosines.
  """
  inverse = _inverse_norms(tied_grads)
  cosines = []
  for b in range(len(inverse) - 1):
    products = [
      tf.reduce_sum(tf.convert_to_tensor(grads[b]) * grads[b + 1])
      for grads in tied_grads
      if grads[b] is not None and grads[b + 1] is not None
    ]
    cosines.append(tf.add_n(products) * inverse[b] * inverse[b + 1])
  return tf.stack(cosines)
