"""What one replica traces, against TPUStrategy and against training."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import tpu_strategy
from tensorflow.python.distribute import tpu_values
import tf_keras

from swe_tf.doctor.tpu import one_replica
from swe_tf.doctor.tpu import step_kinds
from swe_tf.training import micro_batches
from tests import tiny

# What `tpu.replicate` puts around a program (Max is of shapes of inputs, which
# it would pad), and inputs of either all-reduce.
_PLUMBING = {
  *("Const", "Identity", "Max", "NoOp", "Pack", "XlaReplicaId"),
  *("TPUCompilationResult", "TPUReplicateMetadata"),
  *("TPUReplicatedInput", "TPUReplicatedOutput"),
}


def _config(*layers):
  return tiny.config_of(tiny.overrides("unused"), *layers)


def _operations(config) -> collections.Counter:
  """Returns the operations that 4 replicas trace, in functions too."""
  strategy = one_replica.OneReplicaOfTPUStrategy(4)
  with strategy.scope():
    step = step_kinds.build_step(step_kinds.SHARED, config)

    @tf.function(autograph=False)
    def run(inputs):
      return strategy.run(step.run, args=(inputs,))

    program = run.get_concrete_function(step_kinds.make_inputs(config, 2))
  graph = program.graph.as_graph_def()
  nodes = [
    *graph.node,
    *(n for f in graph.library.function for n in f.node_def),
  ]
  return collections.Counter(n.op for n in nodes if n.op not in _PLUMBING)


@pytest.mark.parametrize("count", [1, 2])
def test_the_operations_are_those_of_tpu_strategy(count, monkeypatch):
  config = _config({"task": {"micro_batches": count}})
  # Keras computes the rates of an update once for each name of a device, and
  # variables on TPUs have two names while they are traced.
  monkeypatch.setattr(tpu_values.TPUVariableMixin, "device", "")
  traced = _operations(config)
  for name in ("tpu_run", "_reduce_to"):
    stock = getattr(tpu_strategy.TPUExtended, name)
    monkeypatch.setattr(one_replica._Extended, name, stock)
  expected = _operations(config)
  assert expected["CrossReplicaSum"] > 0
  expected["CollectiveReduceV2"] = expected.pop("CrossReplicaSum")
  assert traced == expected


def test_tpu_strategy_leaves_the_loop_to_the_host(monkeypatch):
  """The program of a TPU is inside of the loop's body, not around the loop."""
  config = _config()
  stock = tpu_strategy.TPUExtended.tpu_run
  monkeypatch.setattr(one_replica._Extended, "tpu_run", stock)
  with one_replica.OneReplicaOfTPUStrategy(4).scope():
    loop = step_kinds.build_loop(step_kinds.SHARED, config, num_steps=3)
    batches = micro_batches.split(step_kinds.make_inputs(config, 4), 2)
    graph = loop.run.get_concrete_function(batches).graph.as_graph_def()
  functions = {f.signature.name: f for f in graph.library.function}
  (loop_op,) = [
    n for f in functions.values() for n in f.node_def if n.op == "While"
  ]
  assert "_tpu_replicate" not in loop_op.attr
  body = functions[loop_op.attr["body"].func.name]
  assert "TPUReplicateMetadata" in {n.op for n in body.node_def}


@pytest.mark.slow
@pytest.mark.parametrize("kind, count", [("shared", 2), ("unshared", 1)])
def test_a_loop_makes_the_updates_of_its_steps(kind, count):
  config = _config({"task": {"micro_batches": count}})
  num_steps = 3
  inputs = step_kinds.make_inputs(config, num_steps * 8)
  batches = micro_batches.split(inputs, num_steps)

  def variables_of(step):
    owned = [*step.model.trainable_variables, *step.optimizer.variables]
    return [v.numpy() for v in owned]

  tf_keras.utils.set_random_seed(1)
  step = step_kinds.build_step(kind, config)
  function = tf.function(step.run)
  for i in range(num_steps):
    function({name: batches[name][i] for name in batches})
  with one_replica.OneReplicaOfTPUStrategy(1).scope():
    tf_keras.utils.set_random_seed(1)
    loop = step_kinds.build_loop(kind, config, num_steps)
    loop.run(batches)
    looped = variables_of(loop)
  for one, other in zip(looped, variables_of(step), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
