"""The real data and the paper, which are beside the checkout or not there."""

import os
import pathlib

import pytest

_DEFAULT = pathlib.Path(__file__).resolve().parents[2].parent / "shared"


@pytest.fixture(scope="session")
def shared():
  """The directory with `data/` and `paper/`; set SWE_SHARED to move it."""
  path = pathlib.Path(os.environ.get("SWE_SHARED", _DEFAULT))
  if not path.is_dir():
    pytest.skip(f"{path} is not there; SWE_SHARED names another place.")
  return path
