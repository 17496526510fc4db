"""The zip of a submission, what is refused, and the averages of the paper."""

import zipfile

import pytest

from swe_tf import errors
from swe_tf.analysis import paper
from swe_tf.commands import submission as command
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.scoring import column
from swe_tf.scoring import glue

# The rows of each test set, and the name of class 1.
_FILES = {
  "AX": (1104, "entailment"),
  "CoLA": (1063, "1"),
  "MNLI-m": (9796, "entailment"),
  "MNLI-mm": (9847, "entailment"),
  "MRPC": (1725, "1"),
  "QNLI": (5463, "not_entailment"),
  "QQP": (390965, "1"),
  "RTE": (3000, "not_entailment"),
  "SST-2": (1821, "1"),
  "STS-B": (1379, "1.000"),
  "WNLI": (146, "1"),
}
# What the tasks that the paper leaves out are filled with.
_FILLED = {"CoLA": "1", "MRPC": "1", "RTE": "entailment", "STS-B": "2.701"}
_FILLED["WNLI"] = "0"


def _write(path, name, rows=None):
  path.parent.mkdir(parents=True, exist_ok=True)
  predictions = dict.fromkeys(range(rows or _FILES[name][0]), 1)
  task = glue_tasks.find_task(name)
  path.write_text(glue.format_predictions(predictions, task))


@pytest.fixture
def runs(tmp_path):
  """Runs for all but WNLI, in each of the layouts that are read."""
  for name in _FILES.keys() - {"WNLI"}:
    place = f"{name}/predictions.tsv"
    if name in ("AX", "MNLI-m", "MNLI-mm"):
      place = f"MNLI/{name}.tsv"
    elif name == "QNLI":
      place = "QNLI/lr_3e-05/predictions.tsv"
    _write(tmp_path / "runs" / place, name)
  selection = tmp_path / "runs/QNLI/selection.json"
  selection.write_text('{"best": "lr_3e-05"}')
  return tmp_path / "runs"


@pytest.mark.parametrize("filled", [{"WNLI"}, _FILLED.keys()])
def test_zip_has_what_the_site_takes(runs, tmp_path, capsys, filled):
  for name in filled:
    (runs / name / "predictions.tsv").unlink(missing_ok=True)
  path = tmp_path / "glue.zip"
  command.run(command.Options(runs=str(runs), output=str(path)))
  output = capsys.readouterr().out
  assert output.count("no predictions") == len(filled)
  with zipfile.ZipFile(path) as archive:
    assert archive.namelist() == [f"{name}.tsv" for name in sorted(_FILES)]
    for name, (rows, label) in _FILES.items():
      header, *lines = archive.read(f"{name}.tsv").decode().splitlines()
      assert header == "index\tprediction"
      if name in filled:
        label = _FILLED[name]
        assert f"all of them {label}: no predictions" in output
      assert lines == [f"{row}\t{label}" for row in range(rows)]
  again = tmp_path / "again.zip"
  glue.write_zip(again, glue.collect(runs)[0])
  assert again.read_bytes() == path.read_bytes()


def test_what_is_refused(runs):
  def refused(message):
    with pytest.raises(errors.UsageError, match=message):
      glue.collect(runs)

  path, selection = runs / "RTE/predictions.tsv", runs / "QNLI/selection.json"
  text = path.read_text()
  _write(path, "RTE", rows=277)
  refused("RTE/pred.*277.*has 3000 rows")
  path.write_text(text.replace("1\tnot_", "1\tno_", 1))
  refused("tsv:3: label 'no_entailment'")
  selection.write_text('{"best": "gone"}')
  refused("'gone', which is not a directory")
  selection.write_text('{"best": "lr_3e-05"}')
  (runs / "SST-2/predictions.tsv").unlink()
  (runs / "MNLI/AX.tsv").unlink()
  refused("for AX, SST-2; ")


def test_every_printed_average_is_reproduced():
  # tests/analysis/test_paper.py compares the tables with the paper's source.
  assert len(paper.TABLES) == 8 + 8 + 4 + 7 + 3
  for printed in paper.TABLES.to_dict("records"):
    found = column.with_averages(printed)
    assert list(found) == list(column.ROWS)
    for row, value in found.items():
      assert value == pytest.approx(printed[row], abs=0.005 + 1e-9), printed


def test_an_incomplete_average_is_left_out():
  found = column.with_averages({"QQP": 72.0, "AX": 36.0, "squad_v1.1": 90.0})
  assert found == {"squad_v1.1": 90.0, "AX": 36.0, "QQP": 72.0}
