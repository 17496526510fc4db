"""Measures each layer's own second moments when it is untied.

While layers are tied, the optimizer keeps the second moments of the mean
gradient, which are up to L times smaller than those of a single layer. The
first 1 / (1 - beta_2) steps after untying are then too large. Keeping every
layer's own while shared would cost what sharing saves, so they are measured at
the switch: some batches run forward and backward, and no weight changes. They
are the next batches of the run, which sees them again.
"""

import functools
import inspect

import orbit
import tensorflow as tf

from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import slots
from swe_tf.sharing import wrapper
from swe_tf.training import phases


class GradientProbe(wrapper.WrappedOptimizer):
  """Keeps the gradients of a step instead of applying them.

  They are clipped and reduced over the replicas as for an update of the inner
  optimizer; nothing is updated.
  """

  def __init__(self, inner_optimizer, name: str = "GradientProbe"):
    super().__init__(inner_optimizer, name=name)
    self._taken = self._no_dependency({})

  def make_update(self, grads_and_vars, name: str | None, aggregate: bool):
    del name, aggregate
    variables = [v for g, v in grads_and_vars if g is not None]
    reduced = self.aggregate_gradients(grads_and_vars)
    # A legacy optimizer returns only the gradients.
    grads = [each[0] if isinstance(each, tuple) else each for each in reduced]
    self._taken[_replica()] = {
      plan_lib.variable_key(v): tf.convert_to_tensor(g)
      for g, v in zip(grads, variables)
    }
    return tf.no_op()

  def take(self) -> dict[str, tf.Tensor]:
    """Returns the gradients of the step that this replica has just traced."""
    return self._taken.pop(_replica())


def _replica() -> int:
  context = tf.distribute.get_replica_context()
  return int(tf.get_static_value(context.replica_id_in_sync_group) or 0)


class SecondMoments:
  """Gives every variable of a plan its own second moments."""

  def __init__(
    self,
    ingredients: phases.Ingredients,
    plan: plan_lib.SharingPlan,
    passes: int,
  ):
    """Prepares the measurement; runs in the scope of the strategy.

    Args:
      ingredients: What the method is applied to.
      plan: The ties.
      passes: The number of batches to measure on.

    Raises:
      UsageError: If the optimizer keeps no second moments.
    """
    slots.check_second_moments(ingredients.optimizer)
    self._ingredients = ingredients
    self._variables = [v for tie in plan.whole_ties for v in tie]
    self._passes = passes
    self._strategy = tf.distribute.get_strategy()

  def measure(self, step: int) -> None:
    """Measures and assigns the moments after update `step`. Runs eagerly."""
    optimizer = self._ingredients.optimizer
    squares = self._mean_squares(step)
    # The optimizer keeps a moving average that started from 0.
    weight = 1.0 - slots.second_moment_decay(optimizer) ** step
    slots.create_slots(optimizer, self._variables)
    for variable in self._variables:
      square = squares[plan_lib.variable_key(variable)]
      slots.second_moment_of(optimizer, variable).assign(weight * square)

  def _mean_squares(self, step: int) -> dict[str, tf.Tensor]:
    """Returns the mean of the squared gradients over the batches, by key."""
    task, model = self._ingredients.task, self._ingredients.model
    with self._strategy.scope():
      probe = GradientProbe(self._ingredients.optimizer)
      metrics = task.build_metrics(training=True)

    def gradients(inputs):
      task.train_step(inputs, model, probe, metrics)
      grads = probe.take()
      return {plan_lib.variable_key(v): _square(grads, v) for v in variables}

    variables = self._variables
    run = tf.function(
      lambda inputs: self._strategy.run(gradients, args=(inputs,))
    )
    sums: dict[str, tf.Tensor] = {}
    batches = iter(self._batches(step))
    for _ in range(self._passes):
      for key, value in run(next(batches)).items():
        # Reduced gradients are the same on all replicas.
        square = self._strategy.experimental_local_results(value)[0]
        sums[key] = sums[key] + square if key in sums else square
    return {key: value / self._passes for key, value in sums.items()}

  def _batches(self, step: int):
    """Returns the batches that the run trains on after update `step`."""
    build_inputs = self._ingredients.task.build_inputs
    if "start_step" in inspect.signature(build_inputs).parameters:
      build_inputs = functools.partial(build_inputs, start_step=step)
    return orbit.utils.make_distributed_dataset(
      self._strategy, build_inputs, self._ingredients.config.task.train_data
    )


def _square(grads: dict[str, tf.Tensor], variable: tf.Variable) -> tf.Tensor:
  grad = grads.get(plan_lib.variable_key(variable))
  return tf.zeros_like(variable) if grad is None else tf.square(grad)
