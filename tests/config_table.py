"""The table of parameters that checks without TensorFlow read.

python -m tests.config_table   # brings swe_tf/configs/fields.json up to date
"""

import inspect
import json
import pathlib
from typing import Any

import gin

from official.core import exp_factory
from official.nlp import train  # noqa: F401 (registers)
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import describe
from swe_tf.configs import fields

PATH = pathlib.Path(fields.__file__).with_name("fields.json")
_OURS = "swe/"


def _names(found: Any, prefix: str = "") -> list[str]:
  """Returns the names in a registry of Model Garden, whose parts are nested."""
  if not isinstance(found, dict):
    return [prefix]
  return [
    name
    for key, value in found.items()
    for name in _names(value, f"{prefix}/{key}".lstrip("/"))
  ]


def _gin() -> dict[str, list[str] | None]:
  found: dict[str, list[str] | None] = {}
  for selector, configurable in gin.config._REGISTRY.items():
    parameters = inspect.signature(configurable.wrapped).parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters if p.name != "self"]
    found[selector] = None if takes_any else names
  return dict(sorted(found.items()))


def make() -> dict[str, Any]:
  """Returns the table, as it must be."""
  names = _names(exp_factory._REGISTERED_CONFIGS)
  ours = sorted(name for name in names if name.startswith(_OURS))
  classes: dict[str, Any] = {}
  experiments = {}
  for name in ours:
    config = exp_factory.get_exp_config(name)
    shape = describe.shape_of(config, classes)
    experiments[name] = {"root": shape.root, "values": config.as_dict()}
  others = sorted(set(names) - set(ours))
  return {
    "experiments": experiments,
    "others": others,
    "gin": _gin(),
    "classes": dict(sorted(classes.items())),
  }


if __name__ == "__main__":
  PATH.write_text(json.dumps(make(), indent=1) + "\n", "utf-8")
