"""A training step as the program that a TPU's compiler is given.

One replica of many is traced as TPUStrategy traces it, with an all-reduce where
the strategy has one, and lowered to XLA's HLO. No accelerator is needed, and
nothing is run.
"""

from typing import Any

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.python.distribute import one_device_strategy

from official.core import config_definitions as cfg
from official.modeling import performance
from swe_tf.doctor import steps
from swe_tf.modeling import registry


class _OneOfManyExtended(one_device_strategy.OneDeviceExtended):
  """As the base class, but reduces over replicas that are not there."""

  def __init__(self, strategy, num_replicas: int):
    super().__init__(strategy, "/cpu:0")
    self._count = num_replicas
    self._reductions = 0

  @property
  def _num_replicas_in_sync(self) -> int:
    return self._count

  def _reduce_to(self, reduce_op, value, destinations, options):
    del destinations, options
    self._reductions += 1
    total = tf.raw_ops.CollectiveReduceV2(
      input=tf.convert_to_tensor(value),
      group_size=self._count,
      group_key=1,
      instance_key=self._reductions,
      ordering_token=[],
      merge_op="Add",
      final_op="Id",
    )
    if reduce_op == tf.distribute.ReduceOp.MEAN:
      return total / self._count
    return total


class OneOfManyStrategy(tf.distribute.Strategy):
  """The view that one replica of a TPUStrategy has; for tracing only."""

  def __init__(self, num_replicas: int):
    super().__init__(_OneOfManyExtended(self, num_replicas))


def lower_step(
  kind: str, config: cfg.ExperimentConfig, num_replicas: int
) -> bytes:
  """Lowers the step of one replica to a serialized HLO module.

  Args:
    kind: One of `steps.KINDS`.
    config: The experiment; its global batch is divided among the replicas.
    num_replicas: The number of replicas.

  Returns:
    A serialized `HloModuleProto`, with names and source lines taken out: two
    equal programs are equal bytes.
  """
  performance.set_mixed_precision_policy(
    config.runtime.mixed_precision_dtype or "float32"
  )
  strategy = OneOfManyStrategy(num_replicas)
  with strategy.scope():
    step = steps.build_step(kind, config)
    inputs = steps.make_inputs(
      config, config.task.train_data.global_batch_size // num_replicas
    )

    @tf.function(jit_compile=True, autograph=False)
    def program(inputs):
      return strategy.run(step.run, args=(inputs,))

    lowered = program.experimental_get_compiler_ir(inputs)(
      stage="hlo_serialized", platform_name="CPU"
    )
  return _without_names(lowered)


def at_depth(
  config: cfg.ExperimentConfig, num_layers: int
) -> cfg.ExperimentConfig:
  """Returns the experiment with another number of layers, not locked."""
  encoder = registry.require_encoder(config.task.as_dict())
  return config.replace(task=encoder.overrides(num_layers=num_layers))


def _without_names(lowered: bytes) -> bytes:
  """Takes out what depends on how often something was traced before."""
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
  """Returns the payload of all all-reduces of a lowered step."""
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
