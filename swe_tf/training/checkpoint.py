"""Saving and restoring without surprises: each fault is one line.

A checkpoint is read to its end and compared with the model before it overwrites
anything; in place of a damaged one, the newest sound one before it is restored.
A checkpoint that cannot be written leaves nothing behind, and NaN weights are
never written: the newest checkpoint is always one that a run can resume from.
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import os
import re
from typing import Any

import numpy as np
import tensorflow as tf

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.modeling import checkpoint_files
from swe_tf.sharing import wrapper

_SHOWN = 3
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def last_good(directory: str) -> str:
  newest = latest(directory)
  if newest is None:
    return "There is no checkpoint yet, so the run starts from scratch"
  return f"The last good checkpoint is {newest}"


def _failed(what: str, error: BaseException, directory: str) -> errors.Failed:
  action = "free some space" if errors.is_full(error) else "fix it"
  return errors.Failed(
    f"{what}: {errors.first_line(error)}. {last_good(directory)}: {action} and "
    "run the same command again to resume from there."
  )


@contextlib.contextmanager
def explain_full_disk(directory: str) -> Iterator[None]:
  """Turns a full disk in the block, say for summaries, into one line."""
  try:
    yield
  except (tf.errors.ResourceExhaustedError, OSError) as error:
    if not errors.is_full(error):
      raise
    raise _failed(f"cannot write to {directory}", error, directory) from error


@contextlib.contextmanager
def _explain_write_errors(*prefixes: str) -> Iterator[None]:
  """Turns a failure to write these checkpoints into one line, and cleans up."""
  try:
    yield
  except (tf.errors.OpError, OSError) as error:
    directory = os.path.dirname(prefixes[-1])
    finished = _finished(directory)
    for prefix in prefixes:
      if prefix in finished:
        continue
      with contextlib.suppress(tf.errors.OpError, OSError):
        for path in tf.io.gfile.glob([f"{prefix}.*", f"{prefix}_temp*"]):
          is_dir = tf.io.gfile.isdir(path)
          (tf.io.gfile.rmtree if is_dir else tf.io.gfile.remove)(path)
    what = f"cannot save a checkpoint in {directory}"
    raise _failed(what, error, directory) from error


def _finished(directory: str) -> list[str]:
  """Returns the checkpoints of a directory, oldest first."""
  state = tf.train.get_checkpoint_state(directory)
  return list(state.all_model_checkpoint_paths) if state else []


def _find(directory: str) -> tuple[list[str], list[str], bool]:
  """Looks for checkpoints in a directory, oldest first.

  Returns their names, the paths in `checkpoint` that are elsewhere, and whether
  this file can be trusted.
  """
  place = files.as_path(directory)
  if not place.is_dir():
    return [], [], True
  # Model Garden's best checkpoint is in a directory of its own.
  numbered = re.compile(r"((?:best_)?ckpt-(\d+))\.index")
  matches = filter(None, (numbered.fullmatch(p.name) for p in place.iterdir()))
  here = [m[1] for m in sorted(matches, key=lambda m: int(m[2]))]
  if (
    len(here) == 1
    and not (place / "checkpoint").exists()
    and why_broken(os.path.join(directory, here[0]))
  ):
    return [], [], True  # All that a kill left of the first one.
  state = None  # Also if it is garbage; an empty one raises.
  with contextlib.suppress(ValueError):
    state = tf.train.get_checkpoint_state(directory)
  listed = list(state.all_model_checkpoint_paths) if state else []
  last = state.model_checkpoint_path if state else ""
  paths = dict.fromkeys([*listed, last] if last else listed)
  strangers = [p for p in paths if files.as_path(p).parent != place]
  names = [os.path.basename(p) for p in paths]
  if not strangers and last and os.path.basename(last) in here:
    return [n for n in names if n in here], [], True
  return [n for n in here if n in names] or here, strangers, False


def latest(directory: str) -> str | None:
  """Returns the newest checkpoint, also if `checkpoint` is lost or damaged."""
  found, _, _ = _find(directory)
  return os.path.join(directory, found[-1]) if found else None


def mend_state(directory: str, write: bool) -> None:
  """Makes `checkpoint` list the checkpoints that are in its directory.

  TensorFlow trusts this file: without it, a run starts from scratch and
  overwrites the checkpoints that are there, and what it lists is deleted once
  there are too many, wherever that is.
  """
  files.check_output_dir(directory, "model_dir")
  found, strangers, is_right = _find(directory)
  if is_right:
    return
  path = files.as_path(directory) / "checkpoint"
  if not found:
    if path.exists():
      raise errors.UsageError(
        f"{path} names no checkpoint of this directory"
        f"{f' but {strangers[0]}' if strangers else ''}; remove it, or copy "
        "the checkpoints here."
      )
    return
  if not write:
    raise errors.UsageError(
      f"{path} does not list the checkpoints of its directory (the newest is "
      f"{found[-1]}); name one of them, or resume the training, which mends it."
    )
  messages.warn(
    f"{path} was lost or lists what is not here; found {', '.join(found)} and "
    "resuming from the last of them."
  )
  lines = [f'model_checkpoint_path: "{found[-1]}"']
  for number, name in enumerate(found, 1):
    lines.append(f'all_model_checkpoint_paths: "{name}"')
    # Those without a time are kept for ever.
    lines.append(f"all_model_checkpoint_timestamps: {number}")
  files.write_text(path, "\n".join(lines) + "\n")


def _is_finite(value: np.ndarray) -> bool:
  # numpy does not count bfloat16 as a float, but `isfinite` works on it.
  return value.dtype.kind in "iubSO" or bool(np.isfinite(value).all())


def not_finite(variables: Iterable[tf.Variable]) -> str | None:
  """Returns the name of a variable that has NaN or infinity in it, if any."""
  return next((v.name for v in variables if not _is_finite(v.numpy())), None)


def _variables_below(
  view: tf.train.CheckpointView, root: int
) -> dict[int, tuple[str, str]]:
  """Returns name and key of every variable of a checkpoint below a node."""
  # A variable is saved under the shortest of its names, so the key of one of
  # the model may begin with `encoder` and not with `model`.
  nodes = view._object_graph_proto.nodes  # pylint: disable=protected-access
  paths, found, to_visit = {root: ""}, {}, [root]
  while to_visit:
    node = to_visit.pop()
    for saved in nodes[node].attributes[:1]:
      found[node] = saved.full_name or paths[node], saved.checkpoint_key
    for name, child in view.children(node).items():
      if child not in paths:
        paths[child] = f"{paths[node]}/{name}".lstrip("/")
        to_visit.append(child)
  return found


def weight_keys(path: str) -> set[str]:
  """Returns the keys of the model's weights in a checkpoint."""
  view = tf.train.CheckpointView(path)
  top = view.children(0)
  if "model" not in top:
    return set()
  return {key for _, key in _variables_below(view, top["model"]).values()}


def why_broken(path: str) -> str | None:
  """Returns why a run cannot continue from a checkpoint; None if it can."""
  try:  # TensorFlow verifies the checksum of every tensor that it reads.
    reader = checkpoint_files.reader(path)
    weights = weight_keys(path)
    for key in reader.get_variable_to_shape_map():
      value = reader.get_tensor(key)
      if key in weights and not _is_finite(value):
        return f"{key.partition('/.ATTRIBUTES')[0]} is not finite"
  # What a reader raises depends on where the damage is.
  except (tf.errors.OpError, IndexError, ValueError, RuntimeError) as error:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
  return None


def newest_sound(path: str) -> str:
  """Returns a checkpoint or, if it is broken, the newest sound one before."""
  earlier = _finished(path.rpartition("/")[0] or ".")
  candidates = [path]
  if path in earlier:
    candidates = earlier[: earlier.index(path) + 1][::-1]
  reasons: dict[str, str] = {}
  for candidate in candidates:
    reason = why_broken(candidate)
    if reason is None:
      if reasons:
        messages.warn(f"continuing from {candidate} instead.")
      return candidate
    reasons[candidate] = reason
    messages.warn(f"checkpoint {candidate} is damaged and not used: {reason}")
  raise errors.UsageError(
    f"{path} is damaged, and so is every checkpoint before it: "
    f"{reasons[path]}. Copy an intact one here, or choose another model_dir to "
    "start from scratch."
  )


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

  TensorFlow restores what it can find and stays silent about the rest, or
  raises from deep inside at the first shape that differs. The items are named
  as in the `tf.train.Checkpoint`.
  """
  with readable(path):
    view = tf.train.CheckpointView(path)
    shapes = checkpoint_files.reader(path).get_variable_to_shape_map()
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
    saved = _variables_below(view, top[name])
    matched = {
      node: obj
      for node, obj in view.match(tf.train.Checkpoint(**{name: item})).items()
      if node in saved and isinstance(obj, tf.Variable)
    }
    found = {id(obj) for obj in matched.values()}
    missing += [v.name for v in item.variables if id(v) not in found]
    extra += [saved[node][0] for node in saved if node not in matched]
    for node, variable in matched.items():
      theirs, ours = list(shapes[saved[node][1]]), variable.shape.as_list()
      if theirs != ours:
        differ.append(
          f"{variable.name}: {theirs} in the checkpoint, {ours} in the model"
        )
  wrong = ""
  for title, lines in (
    ("shapes that differ", differ),
    ("only in the model", missing),
    ("only in the checkpoint", extra),
  ):
    if lines:
      more = len(lines) - _SHOWN
      wrong += f"; {title}: {', '.join(sorted(lines)[:_SHOWN])}"
      wrong += f" and {more} more" if more > 0 else ""
  if wrong:
    raise errors.UsageError(
      f"Checkpoint {path} has a different architecture from this model{wrong}; "
      "set task.model as in the params.yaml of the run that wrote it, or "
      "choose another model_dir or init_checkpoint."
    )


def check_optimizer(path: str, optimizer: Any) -> None:
  """Raises unless the checkpoint has the state of such a stack of optimizers.

  Slots are found by the way through the wrappers, and a phase by the shape of
  its groups: TensorFlow would silently begin with new ones.
  """
  wrapped = wrapper.find_wrapper(optimizer)
  phase = getattr(wrapped, "phase_state", [])
  bare = wrapped.inner_optimizer if wrapped else optimizer
  # A legacy optimizer makes it on first access.
  wanted = wrapper.bare_optimizer(bare).iterations, *phase
  with readable(path):
    view = tf.train.CheckpointView(path)
    shapes = checkpoint_files.reader(path).get_variable_to_shape_map()
  root = view.children(0).get("optimizer")
  if root is None:
    return  # Weights alone, as some start a run from.
  saved = _variables_below(view, root)
  found = {
    id(each): shapes[saved[node][1]]
    for node, each in view.match(
      tf.train.Checkpoint(optimizer=optimizer)
    ).items()
    if node in saved
  }
  had_phase = any(key.endswith(f"/_untied_at{_VALUE}") for key in shapes)
  if had_phase != bool(phase) or any(
    found.get(id(v)) != v.shape.as_list() for v in wanted
  ):
    raise errors.UsageError(
      f"Checkpoint {path} is of another method or optimizer, whose momenta "
      "would be lost here. To go on from its weights, set task.init_checkpoint "
      "to it and choose a new model_dir."
    )


class CheckedCheckpoint(tf.train.Checkpoint):
  """A checkpoint whose `model` is checked before it is restored.

  `check` is called before anything is written; a checkpoint is restored within
  `check_run(path)`. Both may raise. A run that trains `needs_optimizer`.
  """

  def __init__(
    self,
    check: Callable[[], None] = lambda: None,
    check_run: Callable[
      [str], contextlib.AbstractContextManager[Any]
    ] = contextlib.nullcontext,
    needs_optimizer: bool = False,
    **items,
  ):
    super().__init__(**items)
    self._check, self._check_run = check, check_run
    self._needs_optimizer = needs_optimizer
    self._prefix = ""

  def _write(self, file_prefix, options=None):
    self._check()
    # If asynchronous, this raises the error of the checkpoint before.
    before, self._prefix = self._prefix or file_prefix, file_prefix
    with _explain_write_errors(before, file_prefix):
      return super()._write(file_prefix, options)

  def sync(self):
    """Waits until an asynchronous checkpoint is written; raises if that fails.

    TensorFlow would raise only when the next checkpoint is due or, after the
    last, when the program has ended as if all were well.
    """
    with _explain_write_errors(self._prefix):
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
    save_path = newest_sound(save_path)
    with self._check_run(save_path):
      check_fits(save_path, model=self.model)
      if self._needs_optimizer:
        check_optimizer(save_path, self.optimizer)
      return super().restore(save_path, options)
