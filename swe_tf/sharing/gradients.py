"""What sharing does to gradients: pure functions of (gradient, variable) pairs.

All of them run in a replica context, on the gradients of that replica alone.
Nothing here holds state; `optimizer.py` puts them in order.
"""

from typing import List, Mapping, Sequence, Tuple

import tensorflow as tf

from swe_tf.sharing import plan as plan_lib

GradsAndVars = Sequence[Tuple[tf.Tensor, tf.Variable]]


def gradients_by_tie(
    grads_and_vars: GradsAndVars, plan: plan_lib.SharingPlan
) -> List[List[tf.Tensor]]:
  """Returns the gradients of each tie, in the order of `plan.ties`."""
  return _gradients_of(grads_and_vars, plan.ties)


def gradients_by_unit(
    grads_and_vars: GradsAndVars, plan: plan_lib.SharingPlan
) -> List[List[tf.Tensor]]:
  """Returns the gradients of each role in all units, whatever the groups."""
  return _gradients_of(grads_and_vars, plan.whole_ties)


def _gradients_of(grads_and_vars, ties):
  by_key = {plan_lib.variable_key(v): g for g, v in grads_and_vars}
  return [[by_key.get(plan_lib.variable_key(v)) for v in tie] for tie in ties]


def mean_over_ties(
    grads_and_vars: GradsAndVars, plan: plan_lib.SharingPlan
) -> List[Tuple[tf.Tensor, tf.Variable]]:
  """Replaces the gradients of each tie by their mean, given to the stem.

  This is Algorithm 1, line 6, for all that the optimizer has to see: branches
  are left out, all other variables pass through.

  Args:
    grads_and_vars: Pairs for every variable of the model, or (as they come back
      from an outer optimizer that aggregated first) for stems and untied
      variables only.
    plan: The ties.

  Returns:
    The pairs of stems and untied variables, in the given order.
  """
  given = {plan_lib.variable_key(v) for _, v in grads_and_vars}
  mean_of_stem, branches = {}, set()
  for tie, grads in zip(plan.ties, gradients_by_tie(grads_and_vars, plan)):
    keys = [plan_lib.variable_key(v) for v in tie]
    if given.isdisjoint(keys[1:]):
      continue  # Only the stem came: its gradient is the mean already.
    # A variable that the loss does not reach has the gradient zero, as in the
    # oracle; it must not change the divisor.
    reached = [tf.convert_to_tensor(g) for g in grads if g is not None]
    mean_of_stem[keys[0]] = (
        tf.add_n(reached) * (1.0 / len(tie)) if reached else None
    )
    branches.update(keys[1:])
  result = []
  for grad, variable in grads_and_vars:
    key = plan_lib.variable_key(variable)
    if key not in branches:
      result.append((mean_of_stem.get(key, grad), variable))
  return result


def mix_with_mean(
    grads_and_vars: GradsAndVars, plan: plan_lib.SharingPlan
) -> List[Tuple[tf.Tensor, tf.Variable]]:
  """Replaces each tied gradient g_i by (g_0 + g_i) / 2, g_0 the tie's mean.

  Args:
    grads_and_vars: Pairs for every variable of the model.
    plan: The ties.

  Returns:
    The pairs, in the given order.
  """
  mean_of = {}
  stem_means = {
      plan_lib.variable_key(v): g
      for g, v in mean_over_ties(grads_and_vars, plan)
  }
  for tie in plan.ties:
    mean = stem_means.get(plan_lib.variable_key(tie[0]))
    mean_of.update({plan_lib.variable_key(v): mean for v in tie})
  result = []
  for grad, variable in grads_and_vars:
    mean = mean_of.get(plan_lib.variable_key(variable))
    if mean is not None:
      grad = 0.5 * mean if grad is None else 0.5 * (mean + grad)
    result.append((grad, variable))
  return result


def clip_by_global_norm(
    grads_and_vars: GradsAndVars,
    clip_norm: float,
    multiplicity: Mapping[str, int],
) -> List[Tuple[tf.Tensor, tf.Variable]]:
  """Clips as `tf.clip_by_global_norm`, with tied gradients counted B times.

  The oracle clips a list that holds the mean of a tie once for each of its B
  variables. Counting it once would clip less, and change training.

  Args:
    grads_and_vars: Pairs of stems and untied variables.
    clip_norm: The norm above which the gradients are scaled down.
    multiplicity: How many variables of the model a pair stands for, by key;
      1 for a key that is absent.

  Returns:
    The clipped pairs.
  """
  grads, variables = zip(*grads_and_vars)
  # `tf.linalg.global_norm`, but for the factor: with no ties, bit for bit it.
  half_squares = [
      tf.nn.l2_loss(g.values if isinstance(g, tf.IndexedSlices) else g)
      * multiplicity.get(plan_lib.variable_key(v), 1)
      for g, v in grads_and_vars
  ]
  norm = tf.sqrt(2.0 * tf.reduce_sum(tf.stack(half_squares)))
  clipped, _ = tf.clip_by_global_norm(grads, clip_norm, use_norm=norm)
  return list(zip(clipped, variables))


def _inverse_norms(tied_grads) -> List[tf.Tensor]:
  """Returns 1 / |g_b| of each unit's whole gradient; 0 for the gradient 0."""
  return [
      tf.math.reciprocal_no_nan(
          tf.linalg.global_norm([grads[b] for grads in tied_grads])
      )
      for b in range(len(tied_grads[0]))
  ]


def mean_pairwise_cosine(
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


def adjacent_cosines(tied_grads: Sequence[Sequence[tf.Tensor]]) -> tf.Tensor:
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
