"""The configurations that come with the package, by name.

Examples of names are `experiments/models/base.yaml` and `gin/swe.gin`. In the
repository, swe_tf/experiments and swe_tf/gin are links.
"""

import os
import pathlib

_ROOT = pathlib.Path(__file__).parent
_PATTERNS = ("experiments/*.yaml", "experiments/*/*.yaml", "gin/*.gin")


def names() -> list[str]:
  return sorted(
    path.relative_to(_ROOT).as_posix()
    for pattern in _PATTERNS
    for path in _ROOT.glob(pattern)
  )


def read(name: str) -> str:
  return (_ROOT / name).read_text(encoding="utf-8")


def has(path: str) -> bool:
  """Whether a path is a name of the package, vocabularies included."""
  return path.startswith(("experiments/", "gin/")) and (_ROOT / path).is_file()


def find(path: str) -> str:
  """Returns a path or URL as it is, unless only the package has such a file."""
  return str(_ROOT / path) if has(path) and not os.path.exists(path) else path
