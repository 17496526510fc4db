"""A small residual stack, replicas on logical CPU devices, and Algorithm 1.

`run_algorithm_1` is the oracle: every layer has its own variables, the stock
optimizer updates all of them, and while shared each tied gradient is replaced
by the mean over its tie.
"""

import dataclasses
import functools

import numpy as np
import tensorflow as tf
import tf_keras

from official.modeling.optimization import lamb
from official.modeling.optimization import legacy_adamw
import swe_tf
from swe_tf.sharing import slots

NUM_LAYERS, WIDTH = 4, 3
STEPS, TAU = 5, 3
# Adam divides by |g| + epsilon: with its default of 1e-7, a gradient that is
# almost zero turns the last bit of a float32 into a visible difference.
_EPSILON = 1e-3

OPTIMIZERS = {
  "sgd": lambda: tf_keras.optimizers.legacy.SGD(0.01),
  "momentum": lambda: tf_keras.optimizers.SGD(0.01, momentum=0.9),
  "adamw_clip": lambda: legacy_adamw.AdamWeightDecay(
    0.02,
    epsilon=_EPSILON,
    weight_decay_rate=0.01,
    exclude_from_weight_decay=["bias"],
    gradient_clip_norm=0.3,
  ),
  "adam_global_clipnorm": lambda: tf_keras.optimizers.Adam(
    0.02, epsilon=_EPSILON, global_clipnorm=0.3
  ),
  "lamb_global_clipnorm": lambda: lamb.LAMB(
    0.02, epsilon=_EPSILON, weight_decay_rate=0.01, global_clipnorm=0.3
  ),
  "adafactor": lambda: tf_keras.optimizers.Adafactor(0.02),
}


class Stack(tf_keras.Model):
  """Dense in, `NUM_LAYERS` residual blocks, dense out."""

  def __init__(self, num_layers=NUM_LAYERS, width=WIDTH):
    super().__init__()
    # No weight near zero: differences are measured relative to the weights.
    dense = functools.partial(
      tf_keras.layers.Dense,
      bias_initializer=lambda shape, dtype: tf.random.uniform(
        shape, 0.2, 0.8, dtype
      ),
    )
    self.first = dense(width, name="first")
    self.blocks = [
      dense(width, activation="tanh", name=f"block_{i}")
      for i in range(num_layers)
    ]
    self.last = dense(1, name="last")
    self.build([None, width])

  def call(self, inputs):
    x = self.first(inputs)
    for block in self.blocks:
      x = x + block(x)
    return self.last(x)


@functools.lru_cache
def strategy_of(num_replicas: int) -> tf.distribute.Strategy:
  """Returns one strategy a size: collectives for 2, merge calls for 4."""
  if num_replicas == 1:
    return tf.distribute.get_strategy()
  return tf.distribute.MirroredStrategy(
    [f"/cpu:{i}" for i in range(num_replicas)],
    cross_device_ops=(
      tf.distribute.ReductionToOneDevice() if num_replicas == 4 else None
    ),
  )


@dataclasses.dataclass
class State:
  """Weights and slots after training, in the order of the variables."""

  weights: list[np.ndarray]
  slots: list[dict[str, np.ndarray]]


def batches(num_steps=STEPS, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=(num_steps, 8, WIDTH)).astype(np.float32)
  y = rng.normal(size=(num_steps, 8, 1)).astype(np.float32)
  return list(zip(x, y))


def make_stack(seed=0) -> Stack:
  tf_keras.utils.set_random_seed(seed)
  return Stack()


def gradients_of(model, x, y, sparse=False):
  with tf.GradientTape() as tape:
    loss = tf.reduce_mean(tf.square(model(x) - y))
  grads = tape.gradient(loss, model.trainable_variables)
  # As of an embedding: some rows, and one of them twice.
  rows = tf.constant([0, 2, 0])
  return [
    tf.IndexedSlices(tf.gather(g, rows), rows, tf.shape(g))
    if sparse and g.shape.rank == 2
    else g
    for g in grads
  ]


def make_step(model, optimizer, sparse=False):
  """Returns the ordinary train step."""

  def step(x, y):
    grads = gradients_of(model, x, y, sparse)
    optimizer.apply_gradients(list(zip(grads, model.trainable_variables)))

  return step


def run_steps(strategy, step_fn, data):
  """Runs `step_fn(x, y)` in a replica context, one slice a replica."""
  n = strategy.num_replicas_in_sync
  for x, y in data:
    x, y = (
      strategy.experimental_distribute_values_from_function(
        lambda ctx, value=value: tf.constant(
          value[ctx.replica_id_in_sync_group :: n]
        )
      )
      for value in (x, y)
    )
    strategy.run(step_fn, args=(x, y))


def state_of(model, optimizer) -> State:
  return State(
    [v.numpy() for v in model.trainable_variables],
    [
      {k: s.numpy() for k, s in slots.slots_of(optimizer, v).items()}
      for v in model.trainable_variables
    ],
  )


def run_algorithm_1(
  make_optimizer,
  unit_size,
  num_replicas,
  splits=None,
  sparse=False,
) -> State:
  """Runs the oracle; `splits` are the groups from a step on, by that step."""
  splits = splits or {}
  strategy = strategy_of(num_replicas)
  with strategy.scope():
    model = make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
    plan.tie_weights()
    optimizer = make_optimizer()

  def shared_step(x, y):
    grads = gradients_of(model, x, y, sparse)
    by_name = {v.name: g for g, v in zip(grads, model.trainable_variables)}
    for tie in plan.ties:
      tied = [tf.convert_to_tensor(by_name[v.name]) for v in tie]
      mean = tf.reduce_mean(tf.stack(tied), axis=0)
      by_name.update({v.name: mean for v in tie})
    optimizer.apply_gradients(
      [(by_name[v.name], v) for v in model.trainable_variables]
    )

  def unshared_step(x, y):
    grads = gradients_of(model, x, y, sparse)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

  for i, batch in enumerate(batches()):
    plan = plan.split(splits[i]) if i in splits else plan
    run_steps(strategy, shared_step if i < TAU else unshared_step, [batch])
  return state_of(model, optimizer)


def train_shared_then_unshared(
  make_optimizer,
  unit_size,
  num_replicas,
  compiled=False,
  wrap=None,
  untie_after=TAU,
  splits=None,
  sparse=False,
):
  """Trains across tau; returns the state and what was seen while shared."""
  strategy = strategy_of(num_replicas)
  with strategy.scope():
    model = make_stack()
    plan = swe_tf.SharingPlan.from_layers(model.blocks, unit_size)
    inner = make_optimizer()
    sharing = swe_tf.SharedWeightsOptimizer(inner, plan, untie_after)
    sharing.begin()
    optimizer = wrap(sharing) if wrap else sharing

  step = make_step(model, optimizer, sparse)
  compiled_step = tf.function(step) if compiled else step
  data = batches()
  identical = []
  for i, batch in enumerate(data[:untie_after]):
    if splits and i in splits:
      sharing.split(splits[i])
      compiled_step = tf.function(step) if compiled else step
    run_steps(strategy, compiled_step, [batch])
    identical += [
      np.array_equal(tie[0].numpy(), branch.numpy())
      for tie in sharing.plan.ties
      for branch in tie[1:]
    ]
  sharing.untie()
  run_steps(
    strategy, tf.function(step) if compiled else step, data[untie_after:]
  )
  return state_of(model, inner), identical


def max_relative_difference(ours: State, theirs: State) -> float:
  """Largest difference of any weight or slot, relative to its tensor."""

  def difference(a, b):
    return np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-12)

  worst = [difference(a, b) for a, b in zip(ours.weights, theirs.weights)]
  for a, b in zip(ours.slots, theirs.slots):
    assert a.keys() == b.keys()
    worst += [difference(a[name], b[name]) for name in b]
  return max(worst)
