"""What sharing does to gradients: pure functions of (gradient, variable) pairs.

All of them run in a replica context, on the gradients of that replica alone.
Nothing here holds state; `optimizer.py` calls them in order.
"""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from swe_tf import errors
from swe_tf.sharing import plan as plan_lib

GradsAndVars = Sequence[tuple[tf.Tensor, tf.Variable]]


def require_some(grads_and_vars: GradsAndVars) -> None:
  """Raises if there are variables, but no gradient of any."""
  if grads_and_vars and all(g is None for g, _ in grads_and_vars):
    names = ", ".join(v.name for _, v in grads_and_vars[:3])
    raise errors.UsageError(
      f"No gradients provided for any variable: {names}, ... The loss does not "
      "depend on the weights: compute it inside the GradientTape."
    )


def gradients_of(
  grads_and_vars: GradsAndVars, ties: Sequence[Sequence[tf.Variable]]
) -> list[list[tf.Tensor]]:
  """Returns the gradients of each tie's variables; None where there is none."""
  by_key = {plan_lib.variable_key(v): g for g, v in grads_and_vars}
  return [[by_key.get(plan_lib.variable_key(v)) for v in tie] for tie in ties]


def mean_over_ties(
  grads_and_vars: GradsAndVars, plan: plan_lib.SharingPlan
) -> list[tuple[tf.Tensor, tf.Variable]]:
  """Replaces the gradients of each tie by their mean, given to the stem.

  This is Algorithm 1, line 6, reduced to what the optimizer has to see:
  branches are left out, and all other variables pass through.

  Args:
    grads_and_vars: Pairs for every variable of the model, or only for stems and
      untied variables, if an outer optimizer has aggregated them already.
    plan: The ties.

  Returns:
    The pairs of stems and untied variables, in the given order.
  """
  given = {plan_lib.variable_key(v) for _, v in grads_and_vars}
  mean_of_stem, branches = {}, set()
  for tie, grads in zip(plan.ties, gradients_of(grads_and_vars, plan.ties)):
    keys = [plan_lib.variable_key(v) for v in tie]
    if given.isdisjoint(keys[1:]):
      continue  # Only the stem is given: its gradient is the mean already.
    # A variable that the loss does not reach has a zero gradient, as in the
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
) -> list[tuple[tf.Tensor, tf.Variable]]:
  """Replaces each tied gradient g_i by (g_0 + g_i) / 2, g_0 the tie's mean."""
  mean_of = {}
  stem_means = {
    plan_lib.variable_key(v): g for g, v in mean_over_ties(grads_and_vars, plan)
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
) -> list[tuple[tf.Tensor, tf.Variable]]:
  """Clips like `tf.clip_by_global_norm`, with tied gradients counted B times.

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
  # `tf.linalg.global_norm` but for the factor; bit-identical without ties.
  half_squares = [
    tf.nn.l2_loss(g.values if isinstance(g, tf.IndexedSlices) else g)
    * multiplicity.get(plan_lib.variable_key(v), 1)
    for g, v in grads_and_vars
  ]
  norm = tf.sqrt(2.0 * tf.reduce_sum(tf.stack(half_squares)))
  clipped, _ = tf.clip_by_global_norm(grads, clip_norm, use_norm=norm)
  return list(zip(clipped, variables))
