"""The zip of a submission, and what is refused before it is written."""

import json
import zipfile

import pytest

from swe_tf import errors
from swe_tf.commands import submission as command
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.scoring import glue_predictions
from swe_tf.scoring import submission

_LABELS = {
  "CoLA": "1",
  "SST-2": "1",
  "MRPC": "1",
  "QQP": "1",
  "WNLI": "1",
  "STS-B": "1.000",
  "AX": "entailment",
  "MNLI-m": "entailment",
  "MNLI-mm": "entailment",
  "QNLI": "not_entailment",
  "RTE": "not_entailment",
}
_ROWS = {
  "AX": 1104,
  "CoLA": 1063,
  "MNLI-m": 9796,
  "MNLI-mm": 9847,
  "MRPC": 1725,
  "QNLI": 5463,
  "QQP": 390965,
  "RTE": 3000,
  "SST-2": 1821,
  "STS-B": 1379,
  "WNLI": 146,
}


def _write(path, name, rows=None):
  path.parent.mkdir(parents=True, exist_ok=True)
  count = _ROWS[name] if rows is None else rows
  glue_predictions.write_predictions(
    path, dict.fromkeys(range(count), 1), glue_tasks.find_task(name)
  )


@pytest.fixture
def runs(tmp_path):
  """Runs for all but WNLI, in each of the layouts that are read."""
  for name in _ROWS:
    if name == "QNLI":
      _write(tmp_path / "runs/QNLI/lr_3e-05/predictions.tsv", name)
      (tmp_path / "runs/QNLI/selection.json").write_text(
        json.dumps({"best": "lr_3e-05"})
      )
    elif name in ("AX", "MNLI-m", "MNLI-mm"):
      _write(tmp_path / f"runs/MNLI/{name}.tsv", name)
    elif name != "WNLI":
      _write(tmp_path / f"runs/{name}/predictions.tsv", name)
  return tmp_path / "runs"


def test_zip_has_what_the_site_takes(runs, tmp_path):
  path = tmp_path / "glue.zip"
  command.run(command.Options(runs=str(runs), output=str(path)))
  with zipfile.ZipFile(path) as archive:
    assert archive.namelist() == [f"{name}.tsv" for name in sorted(_ROWS)]
    for name, rows in _ROWS.items():
      header, *lines = archive.read(f"{name}.tsv").decode().splitlines()
      assert header == "index\tprediction"
      assert len(lines) == rows
      label = "0" if name == "WNLI" else _LABELS[name]
      assert lines[-1] == f"{rows - 1}\t{label}"
  again = tmp_path / "again.zip"
  submission.write_zip(again, submission.collect(runs)[0])
  assert again.read_bytes() == path.read_bytes()


def test_what_the_paper_leaves_out_is_filled_and_said(runs, tmp_path, capsys):
  larger = {
    "CoLA": "1",
    "MRPC": "1",
    "RTE": "entailment",
    "STS-B": "2.701",
    "WNLI": "0",
  }
  for name in larger:
    (runs / name / "predictions.tsv").unlink(missing_ok=True)
  path = tmp_path / "glue.zip"
  command.run(command.Options(runs=str(runs), output=str(path)))
  output = capsys.readouterr().out
  with zipfile.ZipFile(path) as archive:
    for name, label in larger.items():
      _, *lines = archive.read(f"{name}.tsv").decode().splitlines()
      assert lines == [f"{row}\t{label}" for row in range(_ROWS[name])]
      assert f"all of them {label}: no predictions" in output
  assert output.count("no predictions") == len(larger)


def test_missing_tasks_of_the_paper_are_listed(runs):
  (runs / "SST-2/predictions.tsv").unlink()
  (runs / "MNLI/AX.tsv").unlink()
  with pytest.raises(errors.UsageError, match="for AX, SST-2; "):
    submission.collect(runs)


def test_wrong_number_of_rows(runs):
  _write(runs / "RTE/predictions.tsv", "RTE", rows=277)
  with pytest.raises(errors.UsageError, match="RTE/pred.*277.*has 3000 rows"):
    submission.collect(runs)


def test_label_names_are_checked(runs):
  path = runs / "RTE/predictions.tsv"
  path.write_text(path.read_text().replace("1\tnot_", "1\tno_", 1))
  with pytest.raises(errors.UsageError, match="tsv:3: label 'no_entailment'"):
    submission.collect(runs)


def test_selection_must_exist(runs):
  (runs / "QNLI/selection.json").write_text('{"best": "gone"}')
  with pytest.raises(
    errors.UsageError, match="'gone', which is not a directory"
  ):
    submission.collect(runs)
