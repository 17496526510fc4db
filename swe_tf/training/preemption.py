"""SIGTERM with several workers: all save at the same step, then exit.

TensorFlow has the workers agree on the step (`PreemptionCheckpointHandler`).
Model Garden keeps training after that checkpoint, until the machine is gone;
here the workers exit with a status that says that they may be started again.
"""

from collections.abc import Iterator
import contextlib
import sys
from typing import Any
from unittest import mock

import orbit
import tensorflow as tf

from swe_tf.training import interruption


class SaveAndEnd:
  """A train loop action that checks whether any worker got a SIGTERM."""

  def __init__(
    self,
    cluster_resolver: tf.distribute.cluster_resolver.ClusterResolver,
    checkpoint_manager: tf.train.CheckpointManager,
    checkpoint_number: tf.Variable,
    keep_running_after_save: bool = False,
  ):
    """See `orbit.actions.SaveCheckpointIfPreempted`; it never keeps running."""
    del keep_running_after_save
    self._checkpoint_number = checkpoint_number
    self._handler = tf.distribute.experimental.PreemptionCheckpointHandler(
      cluster_resolver,
      checkpoint_manager,
      termination_config=tf.distribute.experimental.TerminationConfig(
        exit_fn=self._end
      ),
    )

  def __call__(self, logs: Any) -> None:
    del logs
    self._handler.save_checkpoint_if_preempted(
      checkpoint_number=self._checkpoint_number, check_interval=False
    )

  def _end(self) -> None:
    step = int(self._checkpoint_number.numpy())
    print(f"SIGTERM: all workers saved a checkpoint at step {step}", flush=True)
    sys.exit(interruption.STATUS)


@contextlib.contextmanager
def ends_after_saving() -> Iterator[None]:
  """Gives trainers in the block this action instead of Model Garden's."""
  name = "SaveCheckpointIfPreempted"
  with mock.patch.object(orbit.actions, name, SaveAndEnd):
    yield
