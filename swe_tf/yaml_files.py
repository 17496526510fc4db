"""YAML files: loaded safely, with one-line errors."""

import re
from typing import Any

import yaml

from swe_tf import errors
from swe_tf import files

_MOST_NODES = 100_000


class _Loader(yaml.SafeLoader):
  """Refuses double keys, cycles and bombs; makes no Python objects.

  Model Garden writes tuples in `params.yaml` with tags of Python: tagged
  objects are loaded as the plain values that they hold.
  """

  def __init__(self, stream: Any):
    super().__init__(stream)
    self._size = 0
    self._sizes: dict[yaml.Node, int] = {}

  def compose_node(self, parent: Any, index: Any) -> yaml.Node:
    """See base class; `_size` counts nodes as if no alias were used."""
    is_alias = self.check_event(yaml.AliasEvent)
    mark, before = self.peek_event().start_mark, self._size
    node = super().compose_node(parent, index)
    assert node is not None
    problem = ""
    if not is_alias:
      self._size += 1
      self._sizes[node] = self._size - before
    elif node not in self._sizes:
      problem = "an alias stands for what it is part of"
    else:
      self._size += self._sizes[node]
      if self._size > _MOST_NODES:
        problem = f"aliases make more than {_MOST_NODES:,} values"
    if problem:
      raise yaml.MarkedYAMLError(None, None, problem, mark)
    return node

  def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
    node = super().compose_mapping_node(anchor)
    seen = set()
    for key, _ in node.value:
      if isinstance(key, yaml.ScalarNode):
        # The tag tells 1 from "1".
        if (key.tag, key.value) in seen:
          problem = f"the key {key.value!r} is there twice"
          raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
        seen.add((key.tag, key.value))
    return node


def _construct_any(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
  del suffix
  if isinstance(node, yaml.SequenceNode):
    return loader.construct_sequence(node, deep=True)
  if isinstance(node, yaml.MappingNode):
    return loader.construct_mapping(node, deep=True)
  assert isinstance(node, yaml.ScalarNode)  # There is no other kind.
  return loader.construct_scalar(node)


_Loader.add_multi_constructor("", _construct_any)
# 1e-3 is a number in Model Garden, but a string in YAML 1.1.
_Loader.add_implicit_resolver(
  "tag:yaml.org,2002:float",
  re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"),
  list("-+0123456789"),
)


def read(path: files.PathLike) -> Any:
  return parse(files.read_text(path), path)


def parse(text: str, name: files.PathLike) -> Any:
  """Parses YAML text; `name` is what error messages call it."""
  try:
    return yaml.load(text, _Loader)
  except yaml.YAMLError as error:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    raise errors.UsageError(
      f"{name}:{mark.line + 1 if mark else 1}: not YAML ({problem})."
    ) from error
  # Such as a date with a 13th month, `!!bool x`, or endless brackets.
  except (AttributeError, LookupError, RecursionError, ValueError) as error:
    reason = errors.first_line(error)
    raise errors.UsageError(f"{name}: not YAML ({reason}).") from error
