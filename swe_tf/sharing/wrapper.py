"""Optimizers that make their updates through another one, and their order.

A subclass of `WrappedOptimizer` changes gradients (`transform`) or what happens
around an update (`make_update`); slots, schedules and the update itself remain
those of the inner optimizer, legacy or new.

The order is `EMA(LossScale(method(inner)))`: the trainer finds EMA by type, so
it must be outermost; loss scaling decides whether to update at all, so it must
enclose whatever updates.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from official.modeling import optimization
from official.modeling import performance
from swe_tf import errors
from swe_tf.sharing import gradients
from swe_tf.sharing import slots

_LossScale = tf_keras.mixed_precision.LossScaleOptimizer


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
    slots.check_optimizer(inner_optimizer, "inner_optimizer")
    for outer in (_LossScale, optimization.ExponentialMovingAverage):
      if isinstance(inner_optimizer, outer):
        raise TypeError(
          f"inner_optimizer is a {outer.__name__}. Wrap them the other way "
          f"round: {outer.__name__}(SharedWeightsOptimizer(inner, plan))."
        )
    if getattr(inner_optimizer, "gradient_transformers", None):
      raise errors.UsageError(
        "inner_optimizer has gradient_transformers. They would see each tie "
        "once, not once for each of its variables, and train a different model "
        "from Algorithm 1. Transform the gradients in the train step instead."
      )
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

  # Nothing below branches on a tensor; converting it costs seconds per trace.
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

    Without `aggregate`, the pairs are what `aggregate_gradients` returned.
    """
    if aggregate:  # The inner optimizer clips and reduces by itself.
      return self.inner_optimizer.apply_gradients(
        self.transform(grads_and_vars), name=name
      )
    return self.inner_optimizer.apply_gradients(
      grads_and_vars, name=name, experimental_aggregate_gradients=False
    )

  @tf.autograph.experimental.do_not_convert
  def aggregate_gradients(self, grads_and_vars):
    """Reduces the transformed gradients over the replicas.

    A LossScaleOptimizer calls this, and then `apply_gradients` with the result
    if that is finite.
    """
    return self.clip_and_reduce(self.transform(list(grads_and_vars)), {})

  def clip_and_reduce(self, grads_and_vars, multiplicity: dict[str, int]):
    """Does what the inner optimizer does before its update."""
    pairs = [(g, v) for g, v in grads_and_vars if g is not None]
    # AdamWeightDecay skips this clip when it does not aggregate.
    clip_norm = getattr(self.inner_optimizer, "gradient_clip_norm", 0.0)
    if clip_norm > 0.0:
      pairs = gradients.clip_by_global_norm(pairs, clip_norm, multiplicity)
    return slots.all_reduce(self.inner_optimizer, pairs)

  # The rest makes the wrapper look like the optimizer that it wraps.

  def build(self, var_list) -> None:
    slots.build(self.inner_optimizer, var_list)
    self._built = True

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
    slots.finalize(self.inner_optimizer, var_list)

  def get_config(self):
    raise NotImplementedError(
      f"A {type(self).__name__} refers to variables of its model, so it cannot "
      "be built from a config. Save weights or a tf.train.Checkpoint, or call "
      "model.save(..., include_optimizer=False)."
    )


def update_on_replicas(
  function: Callable[..., None], rows: Sequence[tuple[Any, ...]]
) -> None:
  """Calls `function(variable, *arguments)` for each row, on each replica.

  Runs in a replica context. A mirrored variable cannot be assigned there: all
  replicas have to meet first, unless their strategy does without.
  """

  def update_all(strategy, rows):
    update = strategy.extended.update
    for variable, *arguments in rows:
      update(variable, function, args=tuple(arguments), group=False)

  tf.__internal__.distribute.interim.maybe_merge_call(
    update_all, tf.distribute.get_strategy(), rows
  )


class ExponentialMovingAverage(optimization.ExponentialMovingAverage):
  """Model Garden's EMA, for both legacy and new inner optimizers."""

  @property
  def learning_rate(self):
    return self._optimizer.learning_rate

  @learning_rate.setter
  def learning_rate(self, value):
    self._optimizer.learning_rate = value


def stack_optimizers(optimizer, config):
  """Builds the stack around an optimizer, bare or wrapped by a method.

  `config.runtime` says whether to scale the loss, and
  `config.trainer.optimizer_config.ema` whether to average the weights.
  """
  use_float16 = config.runtime.mixed_precision_dtype == "float16"
  if use_float16 and not isinstance(optimizer, WrappedOptimizer):
    # A bare AdamWeightDecay would not clip under loss scaling, and the baseline
    # would be trained with other gradients than the runs it is compared with.
    optimizer = WrappedOptimizer(optimizer)
  optimizer = performance.configure_optimizer(
    optimizer, use_float16=use_float16, loss_scale=config.runtime.loss_scale
  )
  ema = config.trainer.optimizer_config.ema
  if ema is not None:
    optimizer = ExponentialMovingAverage(optimizer, **ema.as_dict())
  return optimizer


def _layers_of(optimizer):
  while optimizer is not None:
    yield optimizer
    # LossScaleOptimizer and ExponentialMovingAverage both keep it here.
    optimizer = getattr(optimizer, "_optimizer", None)


def _first(optimizer, kind):
  return next((o for o in _layers_of(optimizer) if isinstance(o, kind)), None)


def find_wrapper(optimizer) -> WrappedOptimizer | None:
  """Returns the WrappedOptimizer inside EMA and loss scaling, if any."""
  return _first(optimizer, WrappedOptimizer)


def loss_scaling_of(optimizer):
  """Returns the LossScaleOptimizer in the stack, or None."""
  return _first(optimizer, _LossScale)


def bare_optimizer(optimizer):
  """Returns what EMA and loss scaling wrap, as a stock task stacks them."""
  *_, innermost = _layers_of(optimizer)
  return innermost
