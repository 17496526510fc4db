"""Reports in one line why a checkpoint does not fit, before loading it.

TensorFlow restores what it can find and stays silent about the rest, or raises
from deep inside at the first shape that differs.
"""

from collections.abc import Callable, Iterator
import contextlib
from typing import Any

import tensorflow as tf

from swe_tf import errors
from swe_tf.modeling import checkpoint_files
from swe_tf.training import saved_weights
from swe_tf.training import saving
from swe_tf.training import sound_checkpoint

_SHOWN = 3


def _listed(title: str, lines: list[str]) -> str:
  more = len(lines) - _SHOWN
  shown = ", ".join(sorted(lines)[:_SHOWN])
  tail = f" and {more} more" if more > 0 else ""
  return f"; {title}: {shown}{tail}" if lines else ""


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
  """Turns errors of a broken checkpoint in the block into a `UsageError`."""
  try:
    yield
  except errors.UsageError:
    raise
  except (tf.errors.OpError, LookupError, ValueError, RuntimeError) as error:
    raise errors.UsageError(
      f"Checkpoint {path} cannot be read ({errors.first_line(error)}); name "
      "another one that is complete and from TensorFlow 2."
    ) from error


def check_fits(path: str, **items: tf.Module) -> None:
  """Raises unless the checkpoint holds exactly the variables of `items`.

  Args:
    path: The checkpoint, as `tf.train.latest_checkpoint` names it.
    **items: Objects with `variables`, by the name under which a
      `tf.train.Checkpoint` holds them.

  Raises:
    UsageError: Lists the variables that are missing, extra, or of another
      shape.
  """
  with readable(path):
    view = tf.train.CheckpointView(path)
    shapes = checkpoint_files.reader(path).get_variable_to_shape_map()
  nodes = view._object_graph_proto.nodes  # pylint: disable=protected-access
  top = view.children(0)
  absent = [name for name in items if name not in top]
  if absent:
    raise errors.UsageError(
      f"Checkpoint {path} has no {' and no '.join(map(repr, absent))} in it, "
      f"only {', '.join(sorted(top))}. Give a checkpoint that a pre-training "
      "run wrote."
    )
  missing, extra, differ = [], [], []
  for name, item in items.items():
    saved = saved_weights.variables_below(view, top[name])
    matched = {
      node: obj
      for node, obj in view.match(tf.train.Checkpoint(**{name: item})).items()
      if node in saved and isinstance(obj, tf.Variable)
    }
    found = {id(obj) for obj in matched.values()}
    missing += [v.name for v in item.variables if id(v) not in found]
    extra += [saved[node] for node in saved if node not in matched]
    for node, variable in matched.items():
      shape = shapes[nodes[node].attributes[0].checkpoint_key]
      if list(shape) != variable.shape.as_list():
        differ.append(
          f"{variable.name}: {list(shape)} in the checkpoint, "
          f"{variable.shape.as_list()} in the model"
        )
  if missing or extra or differ:
    raise errors.UsageError(
      f"Checkpoint {path} has a different architecture from this model"
      + _listed("shapes that differ", differ)
      + _listed("only in the model", missing)
      + _listed("only in the checkpoint", extra)
      + "; set task.model as in the params.yaml of the run that wrote it, or "
      "choose another model_dir or init_checkpoint."
    )


def check_init_checkpoint(path: str, **items: tf.Module) -> None:
  """Raises unless `task.init_checkpoint` exists and fits; see `check_fits`.

  Args:
    path: A checkpoint, or a directory with one; nothing is checked if empty.
    **items: See `check_fits`.
  """
  if not path:
    return
  check_fits(checkpoint_files.find(path, "task.init_checkpoint"), **items)


class CheckedCheckpoint(tf.train.Checkpoint):
  """A checkpoint whose `model` is checked before it is restored.

  Instead of a damaged checkpoint, the newest sound one before it is restored.

  A checkpoint that cannot be written, perhaps because the disk is full, is
  reported in one line and leaves nothing behind.
  """

  def __init__(self, check: Callable[[], None] = lambda: None, **items):
    """Initializes the checkpoint.

    Args:
      check: Called before anything is written; may raise.
      **items: The objects to save, by name.
    """
    super().__init__(**items)
    self._check = check
    self._prefix = ""

  def _write(self, file_prefix, options=None):
    self._check()
    # If asynchronous, this raises the error of the checkpoint before.
    before, self._prefix = self._prefix or file_prefix, file_prefix
    with saving.explain_write_errors(before, file_prefix):
      return super()._write(file_prefix, options)

  def sync(self):
    """Waits until an asynchronous checkpoint is written; raises if that fails.

    TensorFlow would raise only when the next checkpoint is due or, after the
    last, when the program has ended as if all were well.
    """
    with saving.explain_write_errors(self._prefix):
      super().sync()
      if self._helper is not None:
        self._helper._check_async_thread_error()  # pylint: disable=protected-access

  def track_new_variables(self) -> None:
    """Makes the next checkpoint look for new variables, such as slots.

    An asynchronous checkpoint is written from copies, but only of the variables
    that existed at the first one. Newer variables would be written with the
    values that they have at the time of writing, steps later.
    """
    helper = self._helper
    if helper is not None:
      self.sync()
      helper._join_async_save_thread()  # pylint: disable=protected-access
      self._async_checkpointer_impl = None

  @property
  def _helper(self) -> Any:
    """The asynchronous writer; None if nothing has been written yet."""
    return getattr(self, "_async_checkpointer_impl", None)

  def restore(self, save_path, options=None):
    if save_path is None:
      return super().restore(save_path, options)
    save_path = sound_checkpoint.newest_sound(save_path)
    check_fits(save_path, model=self.model)
    return super().restore(save_path, options)
