"""Scales the steps of some variables, whatever the optimizer.

This needs only the weights before and after an update:
`before + factor * (after - before)`. For AdamW, LAMB and SGD that amounts to
another learning rate for these variables alone; slots are not changed.
"""

from collections.abc import Sequence

import tensorflow as tf


def values_of(variables: Sequence[tf.Variable]) -> list[tf.Tensor]:
  """Returns the current values of the variables, on this replica."""
  return [variable.read_value() for variable in variables]


def scale(
  variables: Sequence[tf.Variable],
  before: Sequence[tf.Tensor],
  factor: tf.Tensor | float,
) -> None:
  """Multiplies the last step of each variable by `factor`, on each replica.

  Args:
    variables: The variables that were updated.
    before: The value of each before the update.
    factor: A scalar.
  """

  def rescale(variable, value, factor):
    step = variable.read_value() - value
    variable.assign(value + tf.cast(factor, step.dtype) * step)

  def rescale_all(strategy, before, factor):
    for variable, value in zip(variables, before):
      strategy.extended.update(
        variable, rescale, args=(value, factor), group=False
      )

  tf.__internal__.distribute.interim.maybe_merge_call(
    rescale_all, tf.distribute.get_strategy(), list(before), factor
  )
