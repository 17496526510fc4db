"""Builds the API reference from the docstrings; needs no network.

    make docs          # build/docs/index.html

or, with the extra `docs` installed, `python docs/build_api.py DIRECTORY`.
"""

import pathlib
import sys

import pdoc

import swe_tf

_ROOT = pathlib.Path(swe_tf.__file__).parent


def names() -> list[str]:
  """Returns swe_tf and all it consists of; a package stands for its modules."""
  packages = [path.parent.name for path in _ROOT.glob("*/__init__.py")]
  modules = [path.stem for path in _ROOT.glob("*.py")]
  inside = {*packages, *modules} - {"__init__", "train"}
  return ["swe_tf", *(f"swe_tf.{name}" for name in sorted(inside))]


def main(directory: str) -> None:
  """Writes the pages to `directory`."""
  for name in swe_tf.__all__:  # Looked up on first use, which pdoc is not.
    setattr(swe_tf, name, getattr(swe_tf, name))
  pdoc.render.configure(docformat="google")
  pdoc.pdoc(*names(), output_directory=pathlib.Path(directory))


if __name__ == "__main__":
  main(*sys.argv[1:])
