"""The zip of a submission, and what is refused before it is written."""

import json
import zipfile

import pytest

from swe_tf import errors
from swe_tf.commands import submission as command
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.scoring import glue
from swe_tf.scoring import submission

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


def _write(path, name, rows=None):
  path.parent.mkdir(parents=True, exist_ok=True)
  count = _FILES[name][0] if rows is None else rows
  predictions = dict.fromkeys(range(count), 1)
  path.write_text(
    glue.format_predictions(predictions, glue_tasks.find_task(name))
  )


@pytest.fixture
def runs(tmp_path):
  """Runs for all but WNLI, in each of the layouts that are read."""
  for name in _FILES:
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
    assert archive.namelist() == [f"{name}.tsv" for name in sorted(_FILES)]
    for name, (rows, label) in _FILES.items():
      header, *lines = archive.read(f"{name}.tsv").decode().splitlines()
      assert header == "index\tprediction"
      assert len(lines) == rows
      label = "0" if name == "WNLI" else label
      assert lines[-1] == f"{rows - 1}\t{label}"
  again = tmp_path / "again.zip"
  submission.write_zip(again, submission.collect(runs)[0])
  assert again.read_bytes() == path.read_bytes()


def test_what_the_paper_leaves_out_is_filled_and_said(runs, tmp_path, capsys):
  larger = {"CoLA": "1", "MRPC": "1", "RTE": "entailment", "STS-B": "2.701"}
  larger["WNLI"] = "0"
  for name in larger:
    (runs / name / "predictions.tsv").unlink(missing_ok=True)
  path = tmp_path / "glue.zip"
  command.run(command.Options(runs=str(runs), output=str(path)))
  output = capsys.readouterr().out
  with zipfile.ZipFile(path) as archive:
    for name, label in larger.items():
      _, *lines = archive.read(f"{name}.tsv").decode().splitlines()
      assert lines == [f"{row}\t{label}" for row in range(_FILES[name][0])]
      assert f"all of them {label}: no predictions" in output
  assert output.count("no predictions") == len(larger)


def test_what_is_refused(runs):
  def refused(message):
    with pytest.raises(errors.UsageError, match=message):
      submission.collect(runs)

  path = runs / "RTE/predictions.tsv"
  text = path.read_text()
  _write(path, "RTE", rows=277)
  refused("RTE/pred.*277.*has 3000 rows")
  path.write_text(text.replace("1\tnot_", "1\tno_", 1))
  refused("tsv:3: label 'no_entailment'")
  (runs / "QNLI/selection.json").write_text('{"best": "gone"}')
  refused("'gone', which is not a directory")
  (runs / "QNLI/selection.json").write_text('{"best": "lr_3e-05"}')
  (runs / "SST-2/predictions.tsv").unlink()
  (runs / "MNLI/AX.tsv").unlink()
  refused("for AX, SST-2; ")
