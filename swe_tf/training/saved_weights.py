"""Which keys of a checkpoint are weights of the model.

A variable is saved under the shortest of its names, so a weight's name may
begin with `encoder` and not with `model`.
"""

import tensorflow as tf


def variables_below(view: tf.train.CheckpointView, root: int) -> dict[int, str]:
  """Returns the name of every variable of a checkpoint below node `root`."""
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


def weight_keys(path: str) -> set[str]:
  """Returns the keys of the model's weights in a checkpoint."""
  view = tf.train.CheckpointView(path)
  nodes = view._object_graph_proto.nodes  # pylint: disable=protected-access
  top = view.children(0)
  if "model" not in top:
    return set()
  return {
    nodes[node].attributes[0].checkpoint_key
    for node in variables_below(view, top["model"])
  }
