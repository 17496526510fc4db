"""`swe finetune --tasks`: a column of the paper, printed, kept, reported."""

import json

import pytest

from swe_tf import errors
from swe_tf.commands import finetune
from swe_tf.commands import report
from swe_tf.scoring import averages
from swe_tf.scoring import column
from swe_tf.studies.finetune import execution
from tests.studies.finetune import samples

_TASKS = ("squad_v1.1", "squad_v2.0", "MNLI", "QNLI", "QQP", "SST-2", "AX")


@pytest.fixture(scope="module", name="root")
def fixture_root(tmp_path_factory):
  folder = tmp_path_factory.mktemp("column")
  for task in _TASKS:
    samples.write_data(task, folder, count=4, real=False)
  return folder / "data"


@pytest.fixture(name="command")
def fixture_command(root, tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(execution, "JOBS", "tests.studies.finetune.fake_jobs")
  # There is no such checkpoint.
  monkeypatch.setattr(finetune.early, "check_finetuning", lambda *a: None)
  monkeypatch.setenv("COLUMNS", "200")

  def run(*rates, tasks=("paper",), data_dir=root):
    status = finetune.run(
      finetune.Options(
        tasks=tasks,
        checkpoint="pretrained",
        data_dir=str(data_dir),
        output_dir=str(tmp_path / "out"),
        learning_rates=rates,
      )
    )
    return status, capsys.readouterr().out

  return run


def test_one_command_gives_the_column_of_the_paper(command, tmp_path):
  status, output = command(1)
  assert status == 0
  folder = tmp_path / "out"
  content = json.loads((folder / "column.json").read_text())
  # SQuAD: the mean of seeds 0 to 4; GLUE: one seed; AX: its own set.
  wanted = dict.fromkeys(averages.SQUAD_ROWS, 52.0)
  wanted |= dict.fromkeys(averages.GLUE_ROWS, 50.0) | {"AX": 20.0}
  wanted |= {"SQuAD average": 52.0, "GLUE average": (20.0 + 5 * 50.0) / 6}
  assert content["scores"] == pytest.approx(wanted)
  assert content["tasks"] == list(column.TASKS)
  assert content["checkpoint"] == "/somewhere/ckpt-7"
  shown = (folder / "column.txt").read_text()
  places = [shown.index(f" {row} ") for row in column.ROWS]
  assert places == sorted(places)
  assert "45.00" in shown and shown.splitlines()[5] in output

  calls = sorted(folder.glob("*/*/calls.txt"))
  assert len(calls) == 2 * 5 + 4
  _, again = command(1)
  assert sum(len(path.read_text().split()) for path in calls) == len(calls)
  assert (folder / "column.txt").read_text() == shown
  assert again.count("finished before") == len(calls)


def test_a_task_that_fails_leaves_the_others_and_a_dash(command, tmp_path):
  command(1, tasks=("SST-2",))
  with pytest.raises(errors.Failed, match="no run of QNLI, SST-2 has a"):
    command(6, tasks=("QNLI", "SST-2"))
  content = json.loads((tmp_path / "out" / "column.json").read_text())
  assert content["scores"] == {}  # Neither has a score with this rate.
  status, _ = command(1, 6, tasks=("QNLI", "SST-2"))
  content = json.loads((tmp_path / "out" / "column.json").read_text())
  assert status == 0 and content["scores"] == {"QNLI": 50.0, "SST-2": 50.0}


@pytest.mark.parametrize(
  "tasks, message",
  [
    (("paper", "SST-2"), "`paper` alone"),
    (("SST-2", "SST-2"), "different tasks"),
    (("SST-2", "CoLA"), "has no CoLA; prepare each task"),
  ],
)
def test_wrong_tasks_are_one_line(command, tasks, message, tmp_path):
  with pytest.raises(errors.UsageError, match=message):
    command(1, tasks=tasks)
  assert not (tmp_path / "out").exists()


def test_paper_needs_ax_and_every_fault_comes_before_any_work(
  command, root, tmp_path
):
  data = tmp_path / "data"
  data.mkdir()
  for task in _TASKS[:-1]:
    (data / task).symlink_to(root / task)
  with pytest.raises(errors.UsageError, match="has no AX;"):
    command(1, data_dir=data)
  (data / "AX").symlink_to(root / "SST-2")
  with pytest.raises(errors.UsageError, match="prepared for SST-2"):
    command(1, data_dir=data)
  with pytest.raises(errors.UsageError, match="the input is bad"):
    command(5)
  assert not (tmp_path / "out").exists()


def test_flags_that_do_not_go_together():
  flags = {"checkpoint": "c", "data_dir": "d", "output_dir": "o"}
  for wrong in ({}, {"task": "RTE", "tasks": ("paper",)}):
    with pytest.raises(errors.UsageError, match="either --task=NAME"):
      finetune.Options(**flags, **wrong)
  with pytest.raises(errors.UsageError, match="looked for in --data_dir"):
    finetune.Options(**flags, tasks=("paper",), ax_data_dir="AX")


def test_a_column_in_the_report_beside_the_sites_scores(
  command, tmp_path, capsys
):
  command(1)
  site = tmp_path / "site.yaml"
  rows = ", ".join(f"{row}: 60" for row in column.TEST_ROWS)
  site.write_text(f"out: {{{rows}}}\n")
  target = tmp_path / "report"
  report.run(
    report.Options(
      runs=(str(tmp_path / "out"),),
      output_dir=str(target),
      site_scores=str(site),
    )
  )
  capsys.readouterr()
  lines = (target / "columns.csv").read_text().splitlines()
  cells = {line.split(",")[-3]: line.split(",")[-2:] for line in lines[1:]}
  assert cells["QNLI"] == ["50.0", "60.0"]
  assert cells["AX"] == ["", "20.0"]
  assert cells["squad_v1.1"] == ["52.0", ""]
  assert float(cells["GLUE average"][0]) == pytest.approx(45.0)
  assert float(cells["GLUE average"][1]) == pytest.approx((20 + 5 * 60) / 6)


@pytest.mark.parametrize(
  "text, message",
  [
    ("[1, 2]", "scores under the name"),
    ("run: 3", "run has 3"),
    ("run: {CoLA: 60}", "a score for CoLA"),
    ("run: {QNLI: high}", "QNLI is 'high'"),
    ("run: {QNLI: 0.93}", "write 93 for a fraction"),
  ],
)
def test_a_file_of_site_scores_that_cannot_be(tmp_path, text, message):
  path = tmp_path / "site.yaml"
  path.write_text(text)
  with pytest.raises(errors.UsageError, match=message):
    column.read_site_scores(path)
