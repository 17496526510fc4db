"""`swe report` as a user runs it: what it writes, replaces and refuses."""

import json
import pathlib

import pytest

from swe_tf import errors
from swe_tf.commands import report
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run


def _report(runs, output_dir):
  report.run(report.Options(runs=(str(runs),), output_dir=str(output_dir)))


def _names(directory: pathlib.Path):
  return {path.name for path in directory.iterdir()}


def _figures(*names):
  return {f"{name}.{kind}" for name in names for kind in ("png", "svg")}


def test_a_report_replaces_an_earlier_one(tmp_path, capsys):
  output = tmp_path / "report"
  write_run(tmp_path / "runs" / "a", config(), 2.0)
  write_run(tmp_path / "runs" / "b", config(sharing=swe()), 2.0)
  write_run(tmp_path / "runs" / "c", config(sharing=swe(0.5)), 2.0)
  _report(tmp_path / "runs", output)
  said = capsys.readouterr().out
  assert "3 runs, 3 of them finished, in 1 setting." in said
  assert "Cannot tell (one seed) whether swe 1x24" in said
  first = {name: (output / name).read_bytes() for name in _names(output)}
  pages = {"report.md", "report.html", "report.json"}
  tables = {"methods.csv", "runs.csv", "cost.csv"}
  figures = _figures("differences", "loss_1", "untie_step_1")
  assert set(first) == pages | tables | figures

  _report(tmp_path / "runs", output)
  again = {name: (output / name).read_bytes() for name in _names(output)}
  assert again == first, "it depends on nothing else"

  _report(tmp_path / "runs" / "a", output)
  left = pages | tables | _figures("loss_1")
  assert _names(output) == left, "what is no longer true is gone"


def test_what_no_report_wrote_is_not_touched(tmp_path):
  output = tmp_path / "report"
  write_run(tmp_path / "run", config(), 2.0)
  output.mkdir()
  (output / "report.md").write_text("mine")
  with pytest.raises(errors.UsageError, match=r"report\.md"):
    _report(tmp_path / "run", output)
  assert _names(output) == {"report.md"}
  assert (output / "report.md").read_text() == "mine"

  (output / "report.json").write_text(json.dumps({"files": ["report.md"]}))
  with pytest.raises(errors.UsageError, match="no report wrote"):
    _report(tmp_path / "run", output)

  (output / "report.md").unlink()
  (output / "report.json").unlink()
  _report(tmp_path / "run", output)
  (output / "notes.txt").write_text("mine")
  with pytest.raises(errors.UsageError, match=r"notes\.txt"):
    _report(tmp_path / "run", output)
  with pytest.raises(errors.UsageError, match="is a file"):
    _report(tmp_path / "run", tmp_path / "run" / "params.yaml")


@pytest.mark.parametrize(
  "content, words",
  [
    (None, "no pre-training run"),
    ("a: [1", "not YAML"),
    ("a: 1", "no pre-training run"),
  ],
)
def test_runs_that_are_none(tmp_path, content, words):
  with pytest.raises(errors.UsageError, match="--runs=.*x is not a directory"):
    _report(tmp_path / "x", tmp_path / "report")
  if content is not None:
    (tmp_path / "params.yaml").write_text(content)
  with pytest.raises(errors.UsageError, match=words):
    _report(tmp_path, tmp_path / "report")
  assert not (tmp_path / "report").exists()
