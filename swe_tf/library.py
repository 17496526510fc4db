"""The configurations that come with the package, by name.

Examples of names are `experiments/models/base.yaml` and `gin/swe.gin`. In the
repository, swe_tf/experiments and swe_tf/gin are links to the folders beside
swe_tf.
"""

import os
import pathlib

_ROOT = pathlib.Path(__file__).parent
_PATTERNS = ("experiments/*.yaml", "experiments/*/*.yaml", "gin/*.gin")


def names() -> list[str]:
  """Returns the names of all configurations."""
  return sorted(
    path.relative_to(_ROOT).as_posix()
    for pattern in _PATTERNS
    for path in _ROOT.glob(pattern)
  )


def read(name: str) -> str:
  """Returns the text of a configuration."""
  return (_ROOT / name).read_text(encoding="utf-8")


def find(path: str) -> str:
  """Returns `path`, or the package's own file of that name.

  Args:
    path: A path, a URL, or the name of a file in experiments/ or gin/.

  Returns:
    `path` itself, unless only the package has such a file.
  """
  is_name = path.startswith(("experiments/", "gin/"))
  if is_name and not os.path.exists(path) and (_ROOT / path).is_file():
    return str(_ROOT / path)
  return path
