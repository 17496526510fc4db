"""Lowers a training step, or a loop of them, for a TPU's compiler.

One replica of many is traced by TPUStrategy (`one_replica`) and lowered to
XLA's HLO. No accelerator is needed, and nothing is run.
"""

from typing import Any

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2

from official.core import config_definitions as cfg
from official.modeling import performance
from swe_tf.doctor.tpu import one_replica
from swe_tf.doctor.tpu import steps
from swe_tf.modeling import registry
from swe_tf.training import micro_batches

# A loop holds two: the batch in use and the next.
_BATCHES = 2


def lower_step(
  kind: str, config: cfg.ExperimentConfig, num_replicas: int
) -> bytes:
  """Lowers the step of one replica to a serialized HLO module.

  Args:
    kind: One of `steps.KINDS`.
    config: The experiment; its global batch is divided among the replicas.
    num_replicas: The number of replicas.

  Returns:
    A serialized `HloModuleProto` without names and source lines, so that equal
    programs are equal bytes.
  """
  strategy = _strategy(config, num_replicas)
  with strategy.scope():
    step = steps.build_step(kind, config)
    inputs = steps.make_inputs(
      config, config.task.train_data.global_batch_size // num_replicas
    )

    @tf.function(jit_compile=True, autograph=False)
    def program(inputs):
      return strategy.run(step.run, args=(inputs,))

    return _lower(program, inputs)


def lower_loop(
  kind: str, config: cfg.ExperimentConfig, num_replicas: int, num_steps: int
) -> bytes:
  """Lowers the trainer's loop on one replica to a serialized HLO module.

  Args:
    kind: One of `steps.KINDS`.
    config: The experiment; its global batch is divided among the replicas.
    num_replicas: The number of replicas.
    num_steps: The number of steps in the loop.

  Returns:
    A serialized `HloModuleProto`, as from `lower_step`.
  """
  with _strategy(config, num_replicas).scope():
    loop = steps.build_loop(kind, config, num_steps)
    batch = config.task.train_data.global_batch_size // num_replicas
    inputs = steps.make_inputs(config, _BATCHES * batch)
    return _lower(loop.run, micro_batches.split(inputs, _BATCHES))


def _strategy(
  config: cfg.ExperimentConfig, num_replicas: int
) -> one_replica.OneReplicaOfTPUStrategy:
  performance.set_mixed_precision_policy(
    config.runtime.mixed_precision_dtype or "float32"
  )
  return one_replica.OneReplicaOfTPUStrategy(num_replicas)


def _lower(program, inputs: steps.Inputs) -> bytes:
  """Lowers a compiled function as called with `inputs`."""
  return _without_names(
    program.experimental_get_compiler_ir(inputs)(
      stage="hlo_serialized", platform_name="CPU"
    )
  )


def at_depth(
  config: cfg.ExperimentConfig, num_layers: int
) -> cfg.ExperimentConfig:
  """Returns an unlocked copy with another number of layers."""
  encoder = registry.require_encoder(config.task.as_dict())
  return config.replace(task=encoder.overrides(num_layers=num_layers))


def _without_names(lowered: bytes) -> bytes:
  """Removes what depends on earlier traces in the same process."""
  module = hlo_pb2.HloModuleProto.FromString(lowered)
  module.name = module.entry_computation_name = "step"
  module.id = 0
  for computation in module.computations:
    computation.name = f"computation.{computation.id}"
    if computation.id == module.entry_computation_id:
      computation.name = module.name
    for instruction in computation.instructions:
      instruction.ClearField("metadata")
  return module.SerializeToString(deterministic=True)


def all_reduce_bytes(lowered: bytes) -> int:
  """Returns the total all-reduce payload of one step of a program."""
  module = hlo_pb2.HloModuleProto.FromString(lowered)
  return sum(
    _bytes(instruction.shape)
    for computation in module.computations
    for instruction in computation.instructions
    if instruction.opcode == "all-reduce"
  )


def _bytes(shape: Any) -> int:
  if shape.tuple_shapes:
    return sum(map(_bytes, shape.tuple_shapes))
  elements = 1
  for dimension in shape.dimensions:
    elements *= dimension
  return 4 * elements  # Gradients are float32.
