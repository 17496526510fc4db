"""SIGTERM and Ctrl-C: save a checkpoint, then exit so as to be started again.

The same happens if nobody reads the output any more, or its disk is full.
A program that trains uses `watch`, and the trainer calls `exit_if_requested`
after every loop. A second signal ends the program at once. Several workers have
to agree on a step first, if `trainer.preemption_on_demand_checkpoint` is set:
that is `save_and_exit`.
"""

from collections.abc import Callable, Iterator
import contextlib
import os
import signal
import sys
from typing import Any

import tensorflow as tf

from swe_tf import errors
from swe_tf import messages

# "Try again later" in sysexits.h: a scheduler may start the run again.
STATUS = 75

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_requested: list[int] = []


class _Output:
  """Standard output; if it cannot be written, the run is asked to end."""

  def __init__(self, stream):
    self._stream = stream

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)

  def write(self, text: str) -> int:
    self._try(self._stream.write, text)
    return len(text)

  def flush(self) -> None:
    self._try(self._stream.flush)

  def _try(self, function, *arguments) -> None:
    try:
      function(*arguments)
    except OSError as error:
      # What is printed from now on is lost, and must not fail again.
      os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
      _requested.append(signal.SIGPIPE)
      with contextlib.suppress(OSError):
        print(
          f"error: cannot write to standard output ({error.strerror}): saving "
          "a checkpoint after this loop, then exiting.",
          file=sys.stderr,
        )


@contextlib.contextmanager
def watch() -> Iterator[None]:
  """Catches the signals in the block; works only in the main thread.

  The loss of another worker ends it with `STATUS`, too: all must start again.
  """
  earlier = {number: signal.getsignal(number) for number in _SIGNALS}

  def restore() -> None:
    for number, handler in earlier.items():
      signal.signal(number, handler)

  def note(number: int, _) -> None:
    restore()  # The next one is not caught.
    _requested.append(number)
    messages.say(
      f"{signal.Signals(number).name}: saving a checkpoint after this loop, "
      "then exiting; repeat to exit at once."
    )

  for number in _SIGNALS:
    signal.signal(number, note)
  try:
    with contextlib.redirect_stdout(_Output(sys.stdout)):
      yield
  except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if len(resolver.cluster_spec().as_dict().get("worker", ())) < 2:
      raise
    messages.say(f"another worker is gone ({errors.first_line(error)})")
    raise SystemExit(STATUS) from error
  finally:
    restore()
    _requested.clear()


def exit_if_requested(trainer) -> None:
  """Saves a checkpoint and exits with `STATUS` if a signal asked for it.

  Several workers would each save at another step, so they exit without saving
  and resume from the last checkpoint.
  """
  if not _requested:
    return
  step, model_dir = int(trainer.global_step.numpy()), trainer.task.logging_dir
  if model_dir and not trainer.several_workers:
    # A manager lists the checkpoints that exist when it is made: one that is
    # still under way would never be listed, nor deleted.
    trainer.checkpoint.sync()
    tf.train.CheckpointManager(
      trainer.checkpoint,
      directory=model_dir,
      max_to_keep=trainer.config.trainer.max_to_keep,
      step_counter=trainer.global_step,
    ).save(checkpoint_number=step)
    messages.say(
      f"saved a checkpoint at step {step}; run the same command again to "
      "resume from it."
    )
  raise SystemExit(STATUS)


def save_and_exit(
  cluster_resolver, checkpoint_manager, global_step: tf.Variable
) -> Callable[[Any], None]:
  """Returns a train action: if any worker got a SIGTERM, all save and exit.

  TensorFlow has the workers agree on the step. Model Garden's own action keeps
  training after that checkpoint, until the machine is gone.
  """

  def leave() -> None:
    step = int(global_step.numpy())
    messages.say(f"SIGTERM: all workers saved a checkpoint at step {step}")
    sys.exit(STATUS)

  distribute = tf.distribute.experimental
  handler = distribute.PreemptionCheckpointHandler(
    cluster_resolver,
    checkpoint_manager,
    termination_config=distribute.TerminationConfig(exit_fn=leave),
  )
  return lambda logs: handler.save_checkpoint_if_preempted(
    checkpoint_number=global_step, check_interval=False
  )
