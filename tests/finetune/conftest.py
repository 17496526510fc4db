"""Fine-tuning runs take minutes: all of them are part of `make test-all`."""

import pathlib

import pytest


def pytest_collection_modifyitems(items):
  here = pathlib.Path(__file__).parent
  for item in items:
    if here in item.path.parents:
      item.add_marker(pytest.mark.slow)
