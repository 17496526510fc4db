"""The examples in docstrings run, and print what they say."""

import doctest
import importlib
import pathlib

import pytest

import swe_tf

_ROOT = pathlib.Path(swe_tf.__file__).parent
_MODULES = sorted(
  ".".join(("swe_tf", *path.relative_to(_ROOT).with_suffix("").parts))
  for path in _ROOT.rglob("*.py")
  if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", _MODULES)
def test_examples_run(name):
  result = doctest.testmod(importlib.import_module(name))
  assert result.attempted and not result.failed
