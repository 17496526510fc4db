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
_STORY = {
  "--learn_vocab=4000": "--learn_vocab=400",
  "train_steps: 2000": "train_steps: 20",
  "steps_per_loop: 50": "steps_per_loop: 10",
  "summary_interval: 50": "summary_interval: 10",
  "hidden_size: 128": "hidden_size: 16",
  "intermediate_size: 512": "intermediate_size: 32",
}
_WORDS = ("gripping", "dull", "moving", "flat", "clever", "slow")
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
  _run_commands(_ROOT / "README.md", tmp_path, _SHORTER)
  for name in ("swe", "swe_stock_driver"):
    assert (tmp_path / "runs" / name / "ckpt-200.index").is_file()
  assert not (tmp_path / "runs/long").exists()


def _run_commands(page, folder, shorter):
  """Runs the bash blocks of a page, with less to do; returns the output."""
  script = "\n".join(
    line
    for token in test_docs.parse(page)
    if token.type == "fence" and token.info == "bash"
    for line in token.content.splitlines()
    if not line.startswith(_LEFT_OUT)
  )
  for printed, less in shorter.items():
    assert printed in script
    script = script.replace(printed, less)
  path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
  done = subprocess.run(
    ["bash", "-euxo", "pipefail", "-c", script],
    cwd=folder,
    env=os.environ | {"PATH": path},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return done.stdout


@pytest.mark.slow
def test_the_story_ends_with_a_model_that_answers(tmp_path):
  corpus = docstrings.write_corpus(str(tmp_path / "corpus"))
  text = pathlib.Path(corpus.validation).read_text(encoding="utf-8")
  (tmp_path / "text.txt").write_text(text, encoding="utf-8")
  (tmp_path / "SST-2").mkdir()
  rows = "\n".join(f"a {w} film\t{i % 2}" for i, w in enumerate(_WORDS * 8))
  for name in ("train", "dev"):
    path = tmp_path / "SST-2" / f"{name}.tsv"
    path.write_text(f"sentence\tlabel\n{rows}\n")
  shown = _run_commands(_ROOT / "docs/story.md", tmp_path, _STORY)
  assert (tmp_path / "story/run/ckpt-20.index").is_file()
  # A row for each of two sentences: probabilities of the labels.
  rows = re.findall(r"\[([\d.]+) +([\d.]+)\]", shown.replace("\n", " "))
  assert len(rows) == 2
  assert all(abs(sum(map(float, row)) - 1) < 0.02 for row in rows)


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
