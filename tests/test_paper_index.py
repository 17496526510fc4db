"""Every table and figure of the paper has a file, a command, a small run."""

import pathlib
import re

import pytest

from experiments import paper_index
from swe_tf import cli
from swe_tf.study import study_file

_ROOT = paper_index.ROOT
_NEEDED = [f"Table {n}" for n in range(1, 6)]
_NEEDED += [f"Figure {n}" for n in range(1, 5)]


def test_nothing_of_the_paper_is_missing():
  assert set(_NEEDED) <= paper_index.read().keys()
  rows = {
    str(path.relative_to(_ROOT))
    for path in _ROOT.glob("experiments/table*/*.yaml")
  }
  named = {p for entry in paper_index.read().values() for p in entry["full"]}
  assert rows <= named
  studies = {path.name for path in _ROOT.glob("experiments/studies/small_*")}
  shown = " ".join(entry["small"] for entry in paper_index.read().values())
  assert studies == set(re.findall(r"small_\w+\.yaml", shown))


@pytest.mark.parametrize("name, entry", paper_index.read().items())
def test_what_the_index_names_is_there(name, entry):
  results = [entry["result"]] if "result" in entry else []
  for path in (*entry["full"], *results):
    assert (_ROOT / path).stat().st_size > 0, path
  program, *words = entry["small"].split()
  if program == "swe":
    command, rest = cli.split_command(words)
    assert command, entry["small"]
    if command == "sweep":
      study = study_file.read_study(_ROOT / rest[0])
      assert study.runs
      for result in results:  # What was run is what the file says.
        runs = pathlib.Path(result).parent / "runs.csv"
        lines = (_ROOT / runs).read_text().splitlines()
        assert len(lines) - 1 == len(study.runs), name
        assert all("finished" in line for line in lines[1:])
  else:
    module = words[1].replace(".", "/")
    assert (_ROOT / f"{module}.py").exists()


def test_the_page_is_that_of_the_index():
  assert paper_index.PAGE.read_text() == paper_index.page()
