"""`swe finetune` with runs that only pretend: the protocol, and a column."""

import dataclasses
import json
import re
import shutil

import pytest

from swe_tf import errors
from swe_tf.analysis import report
from swe_tf.commands import finetune
from swe_tf.commands import train
from swe_tf.data.prepare import manifest
from swe_tf.scoring import column
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import table as table_lib
from swe_tf.studies.finetune import task as task_lib
from swe_tf.training import runner
from tests.studies.finetune import samples

_TASKS = ("squad_v1.1", "squad_v2.0", "MNLI", "QNLI", "QQP", "SST-2", "AX")


@pytest.fixture(scope="module", name="root")
def fixture_root(tmp_path_factory):
  folder = tmp_path_factory.mktemp("column")
  for task in _TASKS:
    samples.write_data(task, folder, count=4)
  sst2 = str(folder / "data" / "SST-2")
  samples.write_encoder(folder / "encoder", sst2, **samples.SMALL)
  return folder / "data"


@pytest.fixture(name="command")
def fixture_command(root, tmp_path, monkeypatch, capsys):
  """Runs the command in `tmp_path/out`; returns its status and output."""
  fake = "tests.studies.finetune.fake_jobs"
  monkeypatch.setattr(task_lib, "TRAIN", f"{fake}:finetune")
  monkeypatch.setattr(task_lib, "PREDICT", f"{fake}:predict")
  # Each task has a vocabulary of its own here.
  monkeypatch.setattr(task_lib.finetuning, "check_vocabulary", lambda *a: None)
  monkeypatch.setenv("COLUMNS", "200")

  def run(*rates, params_override="", data_dir=root, **flags):
    small = ["task.train_data.global_batch_size=2"]
    override = ",".join([*small, *filter(None, [params_override])])
    flags = flags or {"tasks": ("paper",)}
    status = finetune.run(
      finetune.Options(
        checkpoint=str(root.parent / "encoder"),
        data_dir=str(data_dir),
        output_dir=str(tmp_path / "out"),
        learning_rates=rates,
        params_override=override,
        jobs=2,
        **flags,
      )
    )
    return status, capsys.readouterr().out

  return run


@pytest.fixture(name="sst2")
def fixture_sst2(command, root):
  def run(*rates, **flags):
    return command(*rates, data_dir=root / "SST-2", task="SST-2", **flags)

  return run


def _selected(tmp_path):
  return json.loads((tmp_path / "out" / "selection.json").read_text())["best"]


def test_a_bad_run_does_not_stop_the_others_and_results_are_kept(
  sst2, root, tmp_path, monkeypatch
):
  status, output = sst2(2, 3, 4, 1)
  assert status == 1 and _selected(tmp_path) == "lr1-seed0"
  for text in ("ValueError: no luck", "SIGKILL", "diverged: loss nan"):
    assert output.count(text) == 2  # When it happens, and in the table.
  assert "test accuracy 12.5" in output
  table = (tmp_path / "out" / "table.txt").read_text()
  predicted = tmp_path / "out" / "lr1-seed0" / "predictions.tsv"
  predicted.unlink()

  _, output = sst2(2, 3, 4, 1)
  assert (tmp_path / "out" / "table.txt").read_text() == table
  calls = [
    (tmp_path / "out" / f"lr{rate}-seed0" / "calls.txt").read_text()
    for rate in (2, 4, 1)
  ]
  # A failure may be the machine's; a result and a divergence are for good.
  assert [text.count("\n") for text in calls] == [2, 1, 1]
  assert output.count("finished before") == 2
  # The checkpoint is the one that the first call found.
  assert len(set("".join(calls).split())) == 1
  assert "test accuracy 12.5" in output and not predicted.exists()
  monkeypatch.setattr(protocol, "check_ax", lambda data, ax_data_dir: None)
  sst2(1, ax_data_dir=f"{root}/AX")
  assert predicted.exists()
  with pytest.raises(errors.UsageError, match="epochs 3.0, but now it is 1.0"):
    sst2(1, epochs=1.0)


def test_only_the_selected_run_keeps_its_checkpoint(sst2, tmp_path):
  def kept():
    return {path.parent.name for path in (tmp_path / "out").glob("*/*ckpt-*")}

  # While a run failed, the best of each rate may still be selected.
  assert sst2(2, 1, 5, 4, seeds=2)[0] == 1
  assert kept() == {"lr1-seed1", "lr5-seed1", "lr4-seed0"}
  status, output = sst2(1, 5, 4, seeds=2)
  assert status == 0 and kept() == {"lr1-seed1"}
  assert re.search(r"up to [\d.]+ kB, and [\d.]+ kB at the end", output)
  result = tmp_path / "out" / "lr5-seed1" / "result.json"
  result.write_text(result.read_text().replace("51.0", "99.0"))
  with pytest.raises(errors.Failed, match="lr5-seed1 is selected now, but its"):
    sst2(1, 5, seeds=2)


def test_continuous_fine_tuning_waits_for_the_first_checkpoint(
  root, tmp_path, monkeypatch, capsys
):
  encoder, seen = tmp_path / "encoder", []
  flags = f"task.data_dir={root}/SST-2,task.init_checkpoint={encoder}"
  options = train.Options(
    experiment="swe/glue",
    mode="continuous_train_and_eval",
    model_dir=str(tmp_path / "model"),
    params_override=f"{flags},task.train_data.global_batch_size=2",
  )
  monkeypatch.setattr(
    train.time,
    "sleep",
    lambda seconds: shutil.copytree(root.parent / "encoder", encoder),
  )
  monkeypatch.setattr(
    runner, "run", lambda config, *a, **k: seen.append(config.task.data_dir)
  )
  train.run(options)
  assert seen == [f"{root}/SST-2"]
  assert "waiting, since there is no checkpoint at" in capsys.readouterr().out
  shutil.rmtree(encoder)
  with pytest.raises(errors.UsageError, match="there is no checkpoint at"):
    train.run(dataclasses.replace(options, mode="train"))


def test_data_that_was_prepared_anew_is_refused(sst2, root, tmp_path):
  assert sst2(1)[0] == 0
  manifest = root / "SST-2" / "manifest.json"
  before = manifest.read_text()
  table = (tmp_path / "out" / "table.txt").read_text()
  try:
    manifest.write_text(
      before.replace('"dropped_rows": 0', '"dropped_rows": 1')
    )
    with pytest.raises(
      errors.UsageError, match="SST-2 was prepared anew since"
    ):
      sst2(1, 2)
  finally:
    manifest.write_text(before)
  assert not (tmp_path / "out" / "lr2-seed0").exists()
  assert sst2(1)[0] == 0  # The same data may be written again.
  assert (tmp_path / "out" / "table.txt").read_text() == table


def test_scores_that_do_not_exist_are_never_selected(sst2, tmp_path):
  _, output = sst2(6, 1)
  assert _selected(tmp_path) == "lr1-seed0" and " - " in output
  with pytest.raises(errors.Failed, match="has a score"):
    sst2(6)


@pytest.mark.parametrize("content", ["{}", "[]"])
def test_a_study_of_somebody_else_is_one_line(sst2, tmp_path, content):
  (tmp_path / "out").mkdir()
  (tmp_path / "out" / "study.json").write_text(content)
  with pytest.raises(
    errors.UsageError, match="json: 'settings' is|json:1: not"
  ):
    sst2(1)


def test_one_command_gives_the_column_of_the_paper(command, tmp_path):
  status, output = command(1)
  assert status == 0
  folder = tmp_path / "out"
  content = json.loads((folder / "column.json").read_text())
  # SQuAD: the mean of seeds 0 to 4; GLUE: one seed; AX: its own set.
  wanted = dict.fromkeys(column.SQUAD_ROWS, 52.0)
  wanted |= dict.fromkeys(column.GLUE_ROWS, 50.0) | {"AX": 20.0}
  wanted |= {"SQuAD average": 52.0, "GLUE average": (20.0 + 5 * 50.0) / 6}
  assert content["scores"] == pytest.approx(wanted)
  assert content["tasks"] == list(column.TASKS)
  assert content["checkpoint"].endswith("encoder/ckpt-1")
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

  # In a report.
  (section,) = report.make([folder]).sections
  cells = dict(zip(section.frame.score, section.frame.dev))
  assert cells == pytest.approx(content["scores"])


def test_a_task_that_fails_leaves_the_others_and_a_dash(command, tmp_path):
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
  with pytest.raises(errors.UsageError, match="no_such"):
    command(1, params_override="task.no_such=1")
  assert not (tmp_path / "out").exists()


def test_selection_by_mean_of_complete_rates():
  runs = protocol.plan_runs(_data("SST-2"), (1, 2, 3), 2)
  values = {(1, 0): 80.0, (1, 1): 90.0, (2, 0): 86.0, (2, 1): 88.0}
  values[3, 0] = 99.0
  results = {
    f"lr{rate}-seed{seed}": {
      "status": "finished",
      "task": "SST-2",
      "scores": {"dev": {"accuracy": value}},
    }
    for (rate, seed), value in values.items()
  }
  frame = table_lib.make_frame(runs, results, {"lr3-seed1": "gone"})
  best = table_lib.choose(frame, "accuracy")
  # 3 has the best run but not all of them, 1 the best complete run but not
  # the best mean.
  assert best == "lr2-seed1"
  selection = table_lib.selection(frame, best, "SST-2", "accuracy")
  assert selection["scores"]["dev/accuracy"] == {
    "mean": 87.0,
    "std": pytest.approx(2**0.5),
    "runs": 2,
  }
  table = table_lib.render(frame, best, "SST-2", "accuracy", "t")
  text = table_lib.as_text(table)
  assert "87.00 +- 1.41" in text and "seed 1 failed: gone" in text
  json.dumps(selection)


def _data(task, **meta):
  meta["kind"] = manifest.SQUAD if "squad" in task else manifest.GLUE
  return manifest.PreparedData("data", {"task": task, **meta}, {})


def test_the_protocol_of_the_paper():
  glue = protocol.plan_runs(_data("SST-2"))
  rates = [1e-5, 1.5e-5, 2e-5, 3e-5, 4e-5, 5e-5, 7.5e-5, 1e-4, 1.2e-4]
  assert [run.point["learning_rate"] for run in glue] == rates
  assert {run.point["seed"] for run in glue} == {0}
  squad = protocol.plan_runs(_data("squad_v1.1"))
  assert len(squad) == 45
  # Every rate comes before the second seed.
  assert squad[8].point == {"seed": 0, "learning_rate": 1.2e-4}
  assert len({run.name for run in squad}) == 45
  assert len(protocol.plan_runs(_data("squad_v1.1"), [3e-5], 2)) == 2
  v2 = _data("squad_v2.0", version_2_with_negative=True)
  metrics = [protocol.selecting_metric(each) for each in (v2, _data("STS-B"))]
  assert metrics == ["best_f1", "pearson"]


@pytest.mark.parametrize("rates", [[0.0], [-1e-5], [1e-5, 1e-5]])
def test_bad_learning_rates(rates):
  with pytest.raises(errors.UsageError, match="positive and distinct"):
    protocol.plan_runs(_data("SST-2"), rates)


@pytest.mark.parametrize(
  "asked, prepared, message",
  [
    ("AX", "AX", "answered by the MNLI model"),
    ("SST-2", "RTE", "was prepared for RTE"),
    ("squad_v1.1", "squad_v2.0", "was prepared for squad_v2.0"),
    ("MNLI-mm", "MNLI", "has no training data"),
    ("SST2", "SST-2", "no GLUE task 'SST2'"),
  ],
)
def test_tasks_that_cannot_be_run(asked, prepared, message):
  with pytest.raises(errors.UsageError, match=message):
    protocol.check_task(asked, _data(prepared))
