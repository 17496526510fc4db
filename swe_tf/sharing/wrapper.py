"""The base class of optimizers that make their updates through another one.

A subclass changes gradients (`transform`) or what happens around an update
(`make_update`); slots, schedules and the update itself remain those of the
inner optimizer, legacy or new.
"""

import tensorflow as tf
import tf_keras

from official.modeling import optimization
from swe_tf import errors
from swe_tf.sharing import gradients
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import slots


def _check_inner(optimizer) -> None:
  """Raises unless `optimizer` can be the innermost of the stack."""
  if not slots.is_legacy(optimizer):
    plan_lib.require_tf_keras(
      optimizer, tf_keras.optimizers.Optimizer, "inner_optimizer"
    )
  for wrapper in (
    tf_keras.mixed_precision.LossScaleOptimizer,
    optimization.ExponentialMovingAverage,
  ):
    if isinstance(optimizer, wrapper):
      raise TypeError(
        f"inner_optimizer is a {wrapper.__name__}. Wrap them the other way "
        f"round: {wrapper.__name__}(SharedWeightsOptimizer(inner, plan))."
      )
  if getattr(optimizer, "gradient_transformers", None):
    raise errors.UsageError(
      "inner_optimizer has gradient_transformers. They would see each tie "
      "once, not once for each of its variables, and train a different model "
      "from Algorithm 1. Transform the gradients in the train step instead."
    )


def find_wrapper(optimizer) -> "WrappedOptimizer | None":
  """Returns the WrappedOptimizer inside EMA and loss scaling, if any."""
  while optimizer is not None and not isinstance(optimizer, WrappedOptimizer):
    # LossScaleOptimizer and ExponentialMovingAverage both keep it here.
    optimizer = getattr(optimizer, "_optimizer", None)
  return optimizer


class WrappedOptimizer(tf_keras.optimizers.Optimizer):
  """Makes its updates through an inner optimizer.

  `AdamWeightDecay.gradient_clip_norm` clips per replica, before the all-reduce,
  as it does in Model Garden; it also clips under a LossScaleOptimizer, where
  Model Garden silently does not.

  Attributes:
    inner_optimizer: The optimizer that makes the updates. It is used as is,
      never cloned.
  """

  def __init__(self, inner_optimizer, name: str = "WrappedOptimizer"):
    _check_inner(inner_optimizer)
    self._inner_optimizer = inner_optimizer
    super().__init__(name=name, jit_compile=False)
    with tf.init_scope():
      # A legacy optimizer makes this variable on first access, which must not
      # happen inside a compiled step.
      _ = inner_optimizer.iterations

  @property
  def inner_optimizer(self):
    return self._inner_optimizer

  def begin(self) -> None:
    """Prepares the weights for the first update. Runs eagerly."""

  def transform(self, grads_and_vars: gradients.GradsAndVars):
    """Returns the pairs that the inner optimizer gets, before the all-reduce.

    Args:
      grads_and_vars: Pairs for every variable of the model, of this replica.
    """
    return grads_and_vars

  def summands(
    self, grads_and_vars: gradients.GradsAndVars, index: tf.Tensor
  ) -> gradients.GradsAndVars:
    """Returns the gradients to add up over micro-batches before an update.

    An optimizer that needs fewer gradients than there are variables can return
    only those. The sums are then passed to `apply_gradients`.

    Args:
      grads_and_vars: Pairs for every variable of the model, of this replica and
        one micro-batch.
      index: Which micro-batch it is, counted from 0.
    """
    del index
    return grads_and_vars

  def multiplicity(self) -> dict[str, int]:
    """Returns how many variables a transformed gradient stands for, by key."""
    return {}

  def build(self, var_list) -> None:
    """Makes the slots of a new inner optimizer, which needs all at once."""
    if not slots.is_legacy(self.inner_optimizer):
      self.inner_optimizer.build(var_list)
    self._built = True

  # Nothing below branches on a tensor; converting it costs seconds per trace.
  @tf.autograph.experimental.do_not_convert
  def aggregate_gradients(self, grads_and_vars):
    """Reduces the transformed gradients over the replicas."""
    grads_and_vars = [
      (g, v) for g, v in self.transform(list(grads_and_vars)) if g is not None
    ]
    inner = self.inner_optimizer
    # AdamWeightDecay skips this clip when it does not aggregate.
    clip_norm = getattr(inner, "gradient_clip_norm", 0.0)
    if clip_norm > 0.0:
      grads_and_vars = gradients.clip_by_global_norm(
        grads_and_vars, clip_norm, self.multiplicity()
      )
    if slots.is_legacy(inner):
      return inner._aggregate_gradients(grads_and_vars)  # pylint: disable=protected-access
    return inner.aggregate_gradients(grads_and_vars)

  @tf.autograph.experimental.do_not_convert
  def apply_gradients(
    self,
    grads_and_vars,
    name: str | None = None,
    skip_gradients_aggregation: bool = False,
    **kwargs,
  ):
    """Makes one update. See the base class."""
    # Each family of optimizers has its own name for it.
    aggregate = not skip_gradients_aggregation and kwargs.get(
      "experimental_aggregate_gradients", True
    )
    return self.make_update(list(grads_and_vars), name, aggregate)

  def make_update(self, grads_and_vars, name: str | None, aggregate: bool):
    """Makes one update.

    Args:
      grads_and_vars: Pairs of this replica, or, if they are reduced already,
        what `aggregate_gradients` returned.
      name: See `apply_gradients`.
      aggregate: Whether to reduce them over the replicas.
    """
    if aggregate:
      return self.inner_optimizer.apply_gradients(
        self.transform(grads_and_vars), name=name
      )
    return self.apply_aggregated(grads_and_vars, name)

  def apply_aggregated(self, grads_and_vars, name: str | None):
    """Makes the inner optimizer's update from reduced gradients."""
    return self.inner_optimizer.apply_gradients(
      grads_and_vars, name=name, experimental_aggregate_gradients=False
    )

  # The rest makes the wrapper look like the optimizer that it wraps.

  def _create_iteration_variable(self) -> None:
    self._iterations = None  # `iterations` is the inner optimizer's.

  @property
  def iterations(self):
    return self.inner_optimizer.iterations

  @iterations.setter
  def iterations(self, variable):
    self.inner_optimizer.iterations = variable

  @property
  def learning_rate(self):
    return self.inner_optimizer.learning_rate

  @learning_rate.setter
  def learning_rate(self, value):
    self.inner_optimizer.learning_rate = value

  @property
  def variables(self):
    return slots.all_variables(self.inner_optimizer)

  def finalize_variable_values(self, var_list) -> None:
    if not slots.is_legacy(self.inner_optimizer):
      self.inner_optimizer.finalize_variable_values(var_list)

  def get_config(self):
    raise NotImplementedError(
      f"A {type(self).__name__} refers to variables of its model, so it cannot "
      "be built from a config. Save weights or a tf.train.Checkpoint, or call "
      "model.save(..., include_optimizer=False)."
    )
