"""Takes screenshots of HTML pages with a headless Chromium.

    make screenshots
    python -m benchmarks.screenshots --output_dir=docs/images report=PAGE.html

Each page, given as NAME=FILE, becomes NAME_1200.png and NAME_400.png, a desktop
and a phone. They are for people to look at: the tests only check that pages are
not empty and that the columns of a report stay in place. On Debian, get the
browser with `apt-get install --no-install-recommends chromium`.
"""

import argparse
from collections.abc import Sequence
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from PIL import Image

WIDTHS = (1200, 400)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_COLOURS, _MARGIN = 256, 16


def find_browser() -> str | None:
  """Returns the path of the browser; None if there is none."""
  return next(filter(None, map(shutil.which, _BROWSERS)), None)


def _run(page: pathlib.Path, *flags: str) -> str:
  browser = find_browser()
  assert browser is not None
  # A container has neither the sandbox's name spaces nor a graphics card.
  settings = ("--headless", "--no-sandbox", "--disable-gpu")
  return subprocess.run(
    [browser, *settings, "--hide-scrollbars", *flags, page.resolve().as_uri()],
    check=True,
    timeout=120,
    capture_output=True,
    text=True,
  ).stdout


def shoot(page: pathlib.Path, shot: pathlib.Path, width: int, height: int):
  """Writes a screenshot of a page in a window of that size."""
  size = f"--window-size={width},{height}"
  _run(page, size, f"--screenshot={shot.resolve()}")


def content(page: pathlib.Path, width: int) -> str:
  """Returns the page's HTML after its scripts have run."""
  return _run(page, f"--window-size={width},2000", "--dump-dom")


def _shrink(shot: pathlib.Path) -> None:
  """Cuts off the empty end, and saves in few colours: text needs no more."""
  with Image.open(shot) as image:
    picture = image.convert("RGB")
  pixels = np.asarray(picture)
  filled = np.flatnonzero((pixels != pixels[-1, -1]).any((1, 2)))
  end = min(len(pixels), int(filled[-1]) + _MARGIN) if len(filled) else 1
  picture = picture.crop((0, 0, picture.width, end))
  # Keeps colours that only a few thin lines have.
  method = Image.Quantize.MAXCOVERAGE
  picture.quantize(_COLOURS, method, dither=Image.Dither.NONE).save(
    shot, optimize=True
  )


def main(arguments: Sequence[str] | None = None) -> int:
  """Makes the screenshots; the exit status is 1 if there is no browser."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--output_dir", type=pathlib.Path, required=True)
  parser.add_argument("--height", type=int, default=1600)
  parser.add_argument("pages", nargs="+", metavar="NAME=FILE")
  options = parser.parse_args(arguments)
  pages = dict(page.partition("=")[::2] for page in options.pages)
  for name, file in pages.items():
    if not pathlib.Path(file).is_file():
      parser.error(f"{name}={file}: no such file; give pages as NAME=FILE.")
  if find_browser() is None:
    print(f"There is none of {', '.join(_BROWSERS)} here.", file=sys.stderr)
    return 1
  options.output_dir.mkdir(parents=True, exist_ok=True)
  for name, file in pages.items():
    for width in WIDTHS:
      shot = options.output_dir / f"{name}_{width}.png"
      shoot(pathlib.Path(file), shot, width, options.height)
      _shrink(shot)
      print(f"{shot}: {shot.stat().st_size // 1000} kB")
  return 0


if __name__ == "__main__":
  sys.exit(main())
