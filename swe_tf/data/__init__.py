"""Text to masked examples, SQuAD and GLUE.

The modules are loaded when they are used: reading docstrings or scoring
predictions needs no TensorFlow.
"""

import importlib

_MODULES = {
  "build_dataset": "loaders",
  "check_input": "checks",
  "check_manifest": "checks",
  "PretrainTextDataConfig": "pretrain_text",
}

__all__ = list(_MODULES)


def __getattr__(name):
  if name not in _MODULES:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
