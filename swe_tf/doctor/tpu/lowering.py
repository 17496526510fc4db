"""Lowers a training step, or a loop of them, for a TPU's compiler.

One replica of many is traced by TPUStrategy (`one_replica`) and lowered to
XLA's HLO. No accelerator is needed, and nothing is run.
"""

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2

from official.core import config_definitions as cfg
from official.modeling import performance
from swe_tf.doctor.tpu import one_replica
from swe_tf.doctor.tpu import step_kinds
from swe_tf.training import micro_batches

# A loop holds two: the batch in use and the next.
_BATCHES = 2


def lower(
  kind: str,
  config: cfg.ExperimentConfig,
  num_replicas: int,
  loop_steps: int | None = None,
) -> bytes:
  """Lowers the program of one replica to a serialized HLO module.

  Args:
    kind: One of `step_kinds.KINDS`.
    config: The experiment; its global batch is divided among the replicas.
    num_replicas: The number of replicas.
    loop_steps: The number of steps in the trainer's loop; None for one step
      without the loop.

  Returns:
    A serialized `HloModuleProto` without names and source lines, so that equal
    programs are equal bytes.
  """
  performance.set_mixed_precision_policy(
    config.runtime.mixed_precision_dtype or "float32"
  )
  batch = config.task.train_data.global_batch_size // num_replicas
  strategy = one_replica.OneReplicaOfTPUStrategy(num_replicas)
  with strategy.scope():
    if loop_steps is None:
      step = step_kinds.build_step(kind, config)
      inputs = step_kinds.make_inputs(config, batch)

      @tf.function(jit_compile=True, autograph=False)
      def program(inputs):
        return strategy.run(step.run, args=(inputs,))
    else:
      program = step_kinds.build_loop(kind, config, loop_steps).run
      inputs = step_kinds.make_inputs(config, _BATCHES * batch)
      inputs = micro_batches.split(inputs, _BATCHES)
    lowered = program.experimental_get_compiler_ir(inputs)(
      stage="hlo_serialized", platform_name="CPU"
    )
  return _without_names(lowered)


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
