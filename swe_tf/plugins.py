"""Plug-ins: modules of your own that register methods and untie rules.

Name them with `swe --plugins=my_project.methods`, or in the environment
variable SWE_PLUGINS, which the processes that a command starts inherit.
"""

from collections.abc import Sequence
import importlib
import os
import sys

from swe_tf import errors

VARIABLE = "SWE_PLUGINS"


def load(names: Sequence[str] | None = None) -> None:
  """Imports the modules, by default those in SWE_PLUGINS.

  They may be in the current directory. SWE_PLUGINS is set to them.
  """
  text = ",".join(names or ()) or os.environ.get(VARIABLE, "")
  if "\0" in text:
    raise errors.UsageError(f"plugins ({text!r}) have a NUL; remove it.")
  os.environ[VARIABLE] = text
  names = [name.strip() for name in text.split(",") if name]
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
