"""README's commands run as they are printed, in the order of the page."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import markdown_it
import pytest

from swe_tf.data.text import docstrings

_ROOT = pathlib.Path(__file__).resolve().parents[1]
# Minutes of demo and an hour of pilot, of which only the plan is printed. Both
# have tests of their own.
_LEFT_OUT = ("pip install", "make demo")
_SHORTER = {"--hours=1": "--steps=20 --dry_run"}


def _script():
  text = (_ROOT / "README.md").read_text(encoding="utf-8")
  for token in markdown_it.MarkdownIt("commonmark").parse(text):
    if token.type == "fence" and token.info == "bash":
      for line in token.content.splitlines():
        if not line.startswith(_LEFT_OUT):
          yield line


@pytest.mark.slow
@pytest.mark.skipif(
  importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu-check"
)
def test_the_commands_run(tmp_path):
  docstrings.write_corpus(str(tmp_path / "runs/demo/corpus"))
  for name in ("experiments", "gin"):
    (tmp_path / name).symlink_to(_ROOT / name)
  script = "\n".join(_script())
  for printed, shorter in _SHORTER.items():
    assert printed in script
    script = script.replace(printed, shorter)
  path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
  done = subprocess.run(
    ["bash", "-euxo", "pipefail", "-c", script],
    cwd=tmp_path,
    env=os.environ | {"PATH": path},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  for name in ("swe", "swe_stock_driver"):
    assert (tmp_path / "runs" / name / "ckpt-200.index").is_file()
  assert not (tmp_path / "runs/long").exists()
