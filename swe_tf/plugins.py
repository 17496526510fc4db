"""Plug-ins: modules of your own that register methods and untie rules.

Name them with `swe --plugins=my_project.methods`, or in the environment
variable SWE_PLUGINS, which the processes that a command starts inherit.
"""

import importlib
import os
import sys

from swe_tf import errors

VARIABLE = "SWE_PLUGINS"


def load() -> None:
  """Imports the modules in SWE_PLUGINS, from the current directory as well."""
  names = [
    name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name
  ]
  if names and os.getcwd() not in sys.path:
    sys.path.insert(0, os.getcwd())
  for name in names:
    try:
      importlib.import_module(name)
    # A module may raise anything, or end the program.
    except (Exception, SystemExit) as error:
      raise errors.UsageError(
        f"plug-in {name} cannot be imported ("
        f"{type(error).__name__}: {errors.first_line(error)}); name a module "
        "in this directory or on PYTHONPATH that can be imported."
      ) from error
