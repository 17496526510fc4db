"""TPUStrategy without a TPU: what it traces for one of its replicas.

Everything that decides which operations make up a step is TensorFlow's own
TPUStrategy: its variables, its replica context, its reductions, and every
branch that Keras and Model Garden take for it. Three things differ:

* Variables live on the CPU, one copy of each, since there is no TPU.
* `tpu.replicate` is left out. It gives every replica its own copy of the inputs
  and the variables, which TensorFlow's TPU runtime removes again before it
  compiles the program of one replica; here that program is traced directly. The
  replica's number is not an input but comes from XLA.
* The all-reduce is the operation `CollectiveReduceV2`, not `CrossReplicaSum`,
  which only TensorFlow's build for TPUs can lower. Both become XLA's all-reduce
  over all replicas.

Keras computes the rates of an update once for each device name, which is once
here and twice under `tpu.replicate`; XLA merges the two.
"""

import types
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.distribute import tpu_strategy
from tensorflow.python.distribute import tpu_util
from tensorflow.python.tpu import tpu_function
from tensorflow.python.tpu import tpu_replication

_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_TPU = "/job:localhost/replica:0/task:0/device:TPU:{}"
_REPLICATE = "_tpu_replicate"  # Marks what TensorFlow would send to the TPU.


class _OneReplicaContext(tpu_replication.TPUReplicateContext):
  """Makes TensorFlow treat code as a TPU's, but not rewrite it."""

  def AddOp(self, op: tf.Operation) -> None:  # pylint: disable=invalid-name
    super().AddOp(op)
    op._clear_attr(_REPLICATE)  # pylint: disable=protected-access

  def get_replicated_var_handle(self, name, handle_id, vars_, *args, **kwargs):
    del name, handle_id, args, kwargs
    return vars_[0].handle


class _Extended(tpu_strategy.TPUExtended):
  """The base class with the devices and the program of one replica."""

  def __init__(self, strategy: tf.distribute.Strategy, num_replicas: int):
    # TPUs that do not exist, all on one host.
    devices = [
      tf.config.LogicalDevice(_TPU.format(i), "TPU")
      for i in range(num_replicas)
    ]
    metadata = tf.tpu.experimental.TPUSystemMetadata(
      num_replicas, 1, num_replicas, None, devices
    )
    resolver = types.SimpleNamespace(get_tpu_system_metadata=lambda: metadata)
    super().__init__(strategy, resolver)
    self._tpu_devices = np.array([[_CPU]], dtype=object)
    self._reductions = 0

  def tpu_run(self, fn, args, kwargs, options=None) -> Any:
    """Traces `fn` as one replica's part of a TPU program."""
    del options  # For dynamic shapes only; there are none.
    context = _OneReplicaContext(
      name="step", num_replicas=self._num_replicas_in_sync, pivot=tf.no_op()
    )
    strategy = self._container_strategy()
    with strategy.scope():
      with tpu_function.tpu_shard_context(self._num_replicas_in_sync):
        context.Enter()
        try:
          with tpu_strategy._TPUReplicaContext(  # pylint: disable=protected-access
            strategy, replica_id_in_sync_group=xla.replica_id()
          ):
            return fn(*args, **(kwargs or {}))
        finally:
          context.Exit()

  def _reduce_to(self, reduce_op, value, destinations, options):
    if tpu_util.enclosing_tpu_context() is None:
      return super()._reduce_to(reduce_op, value, destinations, options)
    value = tf.convert_to_tensor(value)
    if reduce_op == tf.distribute.ReduceOp.MEAN:
      value = tf.math.scalar_mul(1.0 / self._num_replicas_in_sync, value)
    if self._num_replicas_in_sync == 1:
      return value
    self._reductions += 1
    return tf.raw_ops.CollectiveReduceV2(
      input=value,
      group_size=self._num_replicas_in_sync,
      group_key=1,
      instance_key=self._reductions,
      ordering_token=[],
      merge_op="Add",
      final_op="Id",
    )


class OneReplicaOfTPUStrategy(tf.distribute.TPUStrategy):
  """The program of one replica of a TPUStrategy; for tracing only."""

  def __init__(self, num_replicas: int):
    # Skip TPUStrategy's constructor, which makes an extension of its own.
    tf.distribute.Strategy.__init__(self, _Extended(self, num_replicas))
    # There is only one copy of each variable, so there is nothing to pack.
    self._enable_packed_variable_in_eager_mode = False
