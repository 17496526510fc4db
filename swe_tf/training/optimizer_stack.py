"""The order in which optimizers wrap each other.

`EMA(LossScale(SharedWeights(inner)))`: the trainer finds EMA by type, so it
must be outermost; loss scaling decides whether to update at all, so it must
enclose whatever updates.
"""

import tf_keras

from official.modeling import optimization
from official.modeling import performance


class ExponentialMovingAverage(optimization.ExponentialMovingAverage):
  """Model Garden's EMA, for inner optimizers that are not legacy ones too."""

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


def stack_optimizers(inner, *, wrap, config):
  """Builds the stack around a bare optimizer.

  Args:
    inner: The bare optimizer.
    wrap: A function that puts the method around it.
    config: The experiment config: `runtime` says whether to scale the loss,
      `trainer.optimizer_config.ema` whether to average the weights.

  Returns:
    The outermost optimizer.
  """
  optimizer = performance.configure_optimizer(
    wrap(inner),
    use_float16=config.runtime.mixed_precision_dtype == "float16",
    loss_scale=config.runtime.loss_scale,
  )
  ema = config.trainer.optimizer_config.ema
  if ema is not None:
    optimizer = ExponentialMovingAverage(optimizer, **ema.as_dict())
  return optimizer
