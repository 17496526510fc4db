"""What the pages print runs: README's commands, and all blocks of Python."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from swe_tf.data.text import docstrings
from tests import test_docs

_ROOT = test_docs.ROOT
# Minutes of demo and an hour of pilot, of which only the plan is printed. Both
# have tests of their own.
_LEFT_OUT = ("pip install", "make demo")
_SHORTER = {"--hours=1": "--steps=20 --dry_run"}
_NOT_EXECUTED = re.compile(r"<!-- not executed: \S.* -->\n")
_RUN = """
import json, sys
for page, blocks in json.load(sys.stdin):
  names = {"__name__": page}
  for block in blocks:
    exec(compile(block, page, "exec"), names)
  print("ran", page, len(blocks))
"""


@pytest.mark.slow
@pytest.mark.skipif(
  importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu-check"
)
def test_the_commands_of_readme_run_in_its_order(tmp_path):
  docstrings.write_corpus(str(tmp_path / "runs/demo/corpus"))
  for name in ("experiments", "gin"):
    (tmp_path / name).symlink_to(_ROOT / name)
  script = "\n".join(
    line
    for token in test_docs.parse(_ROOT / "README.md")
    if token.type == "fence" and token.info == "bash"
    for line in token.content.splitlines()
    if not line.startswith(_LEFT_OUT)
  )
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


def _python_blocks(page):
  """Yields the code of each block to run, with its place in the page."""
  tokens = test_docs.parse(page)
  for before, token in zip([None, *tokens], tokens):
    if token.type != "fence" or token.info.strip() != "python":
      continue
    if before is None or not _NOT_EXECUTED.match(before.content):
      yield "\n" * (token.map[0] + 1) + token.content


def test_python_blocks_run(tmp_path):
  found = {
    str(page.relative_to(_ROOT)): list(_python_blocks(page))
    for page in test_docs.WRITTEN
  }
  pages = [(name, blocks) for name, blocks in found.items() if blocks]
  assert len(pages) >= 5
  done = subprocess.run(
    [sys.executable, "-c", _RUN],
    input=json.dumps(pages),
    cwd=tmp_path,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  assert done.stdout.count("ran ") == len(pages)
