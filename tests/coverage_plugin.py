"""A pytest plugin with which `make coverage` counts all that the tests run.

AutoGraph runs a copy of each function that it converts, from a file of its own,
so coverage sees none of its lines. Here the copy is compiled once more with the
names and the line numbers of its source. That moves branches about (AutoGraph
makes a function of the body of an `if`), so lines are exact and branches are
lower bounds.
"""

import ast

import coverage
from tensorflow.python.autograph.pyct import loader

_load_ast = loader.load_ast


def _load_ast_with_lines_of_source(*args, **kwargs):
  module, source, source_map = _load_ast(*args, **kwargs)
  origins = {
    generated.lineno: origin.loc for generated, origin in source_map.items()
  }
  if not origins:
    return module, source, source_map

  # What AutoGraph added goes to the first line, which ran with the import.
  first = min(origins.values(), key=lambda loc: loc.lineno)
  tree = ast.parse(source)
  for node in ast.walk(tree):
    if hasattr(node, "lineno"):
      line = origins.get(node.lineno, first).lineno
      node.lineno = node.end_lineno = line
      node.col_offset = node.end_col_offset = 0
  exec(compile(tree, first.filename, "exec"), vars(module))
  return module, source, source_map


def pytest_configure():
  loader.load_ast = _load_ast_with_lines_of_source


def pytest_sessionfinish():
  # xdist kills a worker that takes long to end, and its figures with it.
  if measurement := coverage.Coverage.current():
    measurement.save()
