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

import numpy as np
import tensorflow as tf
import tf_keras

from official.modeling import optimization
from official.modeling import performance
from swe_tf import errors
from swe_tf.sharing import gradients
from swe_tf.sharing import slots

# The base class keeps these, but only the inner optimizer acts on them.
_SETTINGS = (
  *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue"),
  *("use_ema", "ema_momentum", "ema_overwrite_frequency"),
)
_LossScale = tf_keras.mixed_precision.LossScaleOptimizer


class WrappedOptimizer(tf_keras.optimizers.Optimizer):
  """Makes its updates through an inner optimizer.

  `AdamWeightDecay.gradient_clip_norm` clips per replica, before the all-reduce,
  as it does in Model Garden; it also clips under a LossScaleOptimizer, where
  Model Garden silently does not. The inner optimizer is never cloned.
  """

  def __init__(self, inner_optimizer, name: str = "WrappedOptimizer"):
    slots.check_optimizer(inner_optimizer, "inner_optimizer")
    for outer in (_LossScale, optimization.ExponentialMovingAverage):
      if isinstance(inner_optimizer, outer):
        raise TypeError(
          f"inner_optimizer is a {outer.__name__}. Wrap them the other way "
          f"round: {outer.__name__}(SharedWeightsOptimizer(inner, plan))."
        )
    if isinstance(inner_optimizer, WrappedOptimizer):
      raise errors.UsageError(
        f"inner_optimizer is a {type(inner_optimizer).__name__} already. Wrap "
        "the optimizer once: pass its inner_optimizer."
      )
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
      raise errors.UsageError(
        "The strategy is a ParameterServerStrategy, whose workers do not wait "
        "for each other, so no step is that of the method. Use one that does, "
        "such as MirroredStrategy or MultiWorkerMirroredStrategy."
      )
    super().__init__(name=name, jit_compile=False)
    for setting in _SETTINGS:
      del self.__dict__[setting]
    self._inner_optimizer = inner_optimizer
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

    They are those of this replica, for every variable of the model.
    """
    return grads_and_vars

  def summands(
    self, grads_and_vars: gradients.GradsAndVars, index: tf.Tensor
  ) -> gradients.GradsAndVars:
    """Returns the gradients to add up over micro-batches before an update.

    They come from one replica and micro-batch number `index`. An optimizer that
    needs fewer of them than there are variables can return only those. The sums
    are then passed to `apply_gradients`.
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
    grads_and_vars = list(grads_and_vars)
    if not grads_and_vars:  # As stock does; it is built with the first update.
      return self.iterations
    gradients.require_some(grads_and_vars)
    return self.make_update(grads_and_vars, name, aggregate)

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
    gradients.require_some(grads_and_vars)
    pairs = [(g, v) for g, v in grads_and_vars if g is not None]
    # AdamWeightDecay skips this clip when it does not aggregate.
    clip_norm = getattr(self.inner_optimizer, "gradient_clip_norm", 0.0)
    if clip_norm > 0.0 and pairs:
      pairs = gradients.clip_by_global_norm(pairs, clip_norm, multiplicity)
    return slots.all_reduce(self.inner_optimizer, pairs)

  # The rest makes the wrapper look like the optimizer that it wraps.

  def __getattr__(self, name: str):
    inner = self.__dict__.get("_inner_optimizer")
    if inner is None or name.startswith("_"):
      raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
    return getattr(inner, name)

  def __setattr__(self, name: str, value) -> None:
    inner = self.__dict__.get("_inner_optimizer")
    is_own = name.startswith("_") or hasattr(type(self), name)
    if inner is None or is_own or name in self.__dict__:
      super().__setattr__(name, value)
    elif hasattr(inner, name):
      setattr(inner, name, value)
    elif name in _SETTINGS:
      raise errors.UsageError(
        f"{type(inner).__name__}, the inner optimizer, has no {name}."
      )
    else:
      super().__setattr__(name, value)

  def exclude_from_weight_decay(self, var_list=None, var_names=None) -> None:
    exclude = getattr(self.inner_optimizer, "exclude_from_weight_decay", None)
    if exclude is None:
      raise errors.UsageError(
        f"{type(self.inner_optimizer).__name__} has no method "
        "exclude_from_weight_decay: a legacy optimizer that decays weights "
        "takes the names to exclude when it is made."
      )
    exclude(var_list, var_names)

  def get_weights(self):
    return [v.numpy() for v in self.variables]

  def set_weights(self, weights) -> None:
    """Sets all `variables`; call it once they exist, after `build`."""
    variables = self.variables
    if [tuple(v.shape) for v in variables] != [np.shape(w) for w in weights]:
      raise errors.UsageError(
        f"set_weights takes values for the {len(variables)} variables of "
        f"{type(self).__name__}, in their shapes, got {len(weights)}. Build "
        "the optimizer first, and pass what get_weights returned."
      )
    for variable, weight in zip(variables, weights):
      variable.assign(weight)

  def build(self, var_list) -> None:
    if not slots.is_legacy(self.inner_optimizer):
      self.inner_optimizer.build(var_list)  # It makes all slots at once.
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
  def _learning_rate(self):  # A schedule, for the TensorBoard callback.
    inner = self.inner_optimizer
    return getattr(inner, "_learning_rate", inner.learning_rate)

  @property
  def variables(self):
    # Stock's can be called, as a legacy optimizer's has to be.
    return type(super().variables)(slots.all_variables(self.inner_optimizer))

  def finalize_variable_values(self, var_list) -> None:
    if not slots.is_legacy(self.inner_optimizer):
      self.inner_optimizer.finalize_variable_values(var_list)

  def _trackable_children(self, save_type="checkpoint", **kwargs):
    children = super()._trackable_children(save_type, **kwargs)
    if save_type == "savedmodel":  # What stands in for it looks for this.
      children["_iterations"] = self.iterations
    return children

  def get_config(self):
    raise NotImplementedError(
      f"A {type(self).__name__} refers to variables of its model, so it cannot "
      "be built from a config. Save weights or a tf.train.Checkpoint."
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

  def swap_weights(self):
    """Swaps the weights and their averages, also without a strategy.

    Stock adds and subtracts: rounding then changes the weights, and so the
    training, with every evaluation.
    """
    for average, weight in zip(self._average_weights, self._model_weights):
      value = weight.read_value()
      weight.assign(average.read_value())
      average.assign(value)

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
