"""Says in a few lines why a checkpoint does not fit, before anything is loaded.

TensorFlow restores what it can find and stays silent about the rest, or raises
from deep inside at the first shape that differs.
"""

import tensorflow as tf

from swe_tf import errors

_SHOWN = 5


def _variables_below(
  view: tf.train.CheckpointView, root: int
) -> dict[int, str]:
  """Returns the path of every variable of the checkpoint below node `root`."""
  nodes = view._object_graph_proto.nodes  # pylint: disable=protected-access
  paths, found, to_visit = {root: ""}, {}, [root]
  while to_visit:
    node = to_visit.pop()
    if nodes[node].attributes:
      found[node] = nodes[node].attributes[0].full_name or paths[node]
    for name, child in view.children(node).items():
      if child not in paths:
        paths[child] = f"{paths[node]}/{name}".lstrip("/")
        to_visit.append(child)
  return found


def _listed(title: str, lines: list[str]) -> str:
  more = len(lines) - _SHOWN
  shown = [f"\n    {line}" for line in sorted(lines)[:_SHOWN]]
  tail = f"\n    ... and {more} more" if more > 0 else ""
  return f"\n  {title} ({len(lines)}):{''.join(shown)}{tail}" if lines else ""


def check_fits(path: str, **items: tf.Module) -> None:
  """Raises unless the checkpoint holds exactly the variables of `items`.

  Args:
    path: The checkpoint, as `tf.train.latest_checkpoint` names it.
    **items: Objects with `variables`, by the name under which a
      `tf.train.Checkpoint` holds them.

  Raises:
    UsageError: With the variables that are missing, extra, or of another shape.
  """
  view = tf.train.CheckpointView(path)
  nodes = view._object_graph_proto.nodes  # pylint: disable=protected-access
  shapes = tf.train.load_checkpoint(path).get_variable_to_shape_map()
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
      f"Checkpoint {path} is of another architecture than this model."
      + _listed("shapes that differ", differ)
      + _listed("only in the model", missing)
      + _listed("only in the checkpoint", extra)
      + "\nSet task.model as in the params.yaml of the run that wrote it, or "
      "choose another model_dir or init_checkpoint."
    )


class CheckedCheckpoint(tf.train.Checkpoint):
  """A checkpoint whose `model` is compared before it is restored."""

  def restore(self, save_path, options=None):
    if save_path is not None:
      check_fits(save_path, model=self.model)
    return super().restore(save_path, options)
