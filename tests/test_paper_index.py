"""Every table and figure of the paper has a file, a command, a small run."""

import pathlib
import re

import numpy as np
import pytest

from experiments import figure1
from experiments import paper_index
from swe_tf import cli
from swe_tf.studies import study_file

_ROOT = paper_index.ROOT
_NEEDED = [f"Table {n}" for n in range(1, 6)]
_NEEDED += [f"Figure {n}" for n in range(1, 5)]


def test_nothing_of_the_paper_is_missing():
  index = paper_index.read()
  assert set(_NEEDED) <= index.keys()
  assert [name for name in index if "result" not in index[name]] == []
  rows = {
    str(path.relative_to(_ROOT))
    for path in _ROOT.glob("experiments/table*/*.yaml")
  }
  named = {path for entry in index.values() for path in entry["full"]}
  assert rows <= named
  studies = {path.name for path in _ROOT.glob("experiments/studies/small_*")}
  shown = " ".join(entry["small"] for entry in index.values())
  assert studies == set(re.findall(r"small_\w+\.yaml", shown))


@pytest.mark.parametrize("name, entry", paper_index.read().items())
def test_what_the_index_names_is_there(name, entry):
  result = pathlib.Path(entry["result"])
  for path in (*entry["full"], result):
    assert (_ROOT / path).stat().st_size > 0, path
  program, *words = entry["small"].split()
  if program == "swe":
    command, rest = cli.split_command(words)
    assert command, entry["small"]
    if command == "sweep":
      study = study_file.read_study(_ROOT / rest[0])
      assert study.runs
      # What was run is what the file says.
      lines = (_ROOT / result.parent / "runs.csv").read_text().splitlines()
      assert len(lines) - 1 == len(study.runs), name
      assert all("finished" in line for line in lines[1:])
  else:
    module = words[1].replace(".", "/")
    assert (_ROOT / f"{module}.py").exists()


def test_the_page_is_that_of_the_index():
  assert paper_index.PAGE.read_text() == paper_index.page()


def test_sharing_first_ends_nearer_to_the_truth_and_both_fit():
  ends = {tau: figure1.train(tau)[-1] for tau in (0, figure1.TAU)}
  for end in ends.values():
    assert abs(figure1.SAMPLE @ (end - figure1.TRUE)) < 1e-2
  shared = figure1.train(figure1.TAU)[: figure1.TAU + 1]
  np.testing.assert_array_equal(shared[:, 0], shared[:, 1])
  plain, swe = (
    np.linalg.norm(ends[tau] - figure1.TRUE) for tau in (0, figure1.TAU)
  )
  assert swe < 0.6 * plain
