"""The order in which optimizers wrap each other.

`EMA(LossScale(method(inner)))`: the trainer finds EMA by type, so it must be
outermost; loss scaling decides whether to update at all, so it must enclose
whatever updates.
"""

import tf_keras

from official.modeling import optimization
from official.modeling import performance
from swe_tf.sharing import wrapper


class ExponentialMovingAverage(optimization.ExponentialMovingAverage):
  """Model Garden's EMA, for both legacy and new inner optimizers."""

  @property
  def learning_rate(self):
    return self._optimizer.learning_rate

  @learning_rate.setter
  def learning_rate(self, value):
    self._optimizer.learning_rate = value


def loss_scaling_of(optimizer):
  """Returns the LossScaleOptimizer in the stack, or None."""
  if isinstance(optimizer, ExponentialMovingAverage):
    optimizer = optimizer._optimizer  # pylint: disable=protected-access
  if isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer):
    return optimizer
  return None


def bare_optimizer(optimizer):
  """Returns what EMA and loss scaling wrap, as a stock task stacks them."""
  while True:
    if isinstance(optimizer, optimization.ExponentialMovingAverage):
      optimizer = optimizer._optimizer  # pylint: disable=protected-access
    elif isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer):
      optimizer = optimizer.inner_optimizer
    else:
      return optimizer


def stack_optimizers(optimizer, config):
  """Builds the stack around the optimizer of a method.

  Args:
    optimizer: The optimizer that makes the updates, bare or wrapped by a
      method.
    config: The experiment config: `runtime` says whether to scale the loss,
      `trainer.optimizer_config.ema` whether to average the weights.

  Returns:
    The outermost optimizer.
  """
  use_float16 = config.runtime.mixed_precision_dtype == "float16"
  if use_float16 and not isinstance(optimizer, wrapper.WrappedOptimizer):
    # A bare AdamWeightDecay would not clip under loss scaling, and the baseline
    # would be trained with other gradients than the runs it is compared with.
    optimizer = wrapper.WrappedOptimizer(optimizer)
  optimizer = performance.configure_optimizer(
    optimizer, use_float16=use_float16, loss_scale=config.runtime.loss_scale
  )
  ema = config.trainer.optimizer_config.ema
  if ema is not None:
    optimizer = ExponentialMovingAverage(optimizer, **ema.as_dict())
  return optimizer
