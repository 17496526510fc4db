"""The protocol with jobs that only pretend: what is run, kept and selected."""

import io
import json

import pytest
from rich import console as rich_console

from swe_tf import errors
from swe_tf.commands import finetune
from swe_tf.data.prepare import prepared_data
from swe_tf.studies.finetune import execution
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import table as table_lib
from tests.studies.finetune import samples


@pytest.fixture(scope="module", name="data_dir")
def fixture_data_dir(tmp_path_factory):
  return samples.write_data(
    "SST-2", tmp_path_factory.mktemp("data"), count=4, real=False
  )


@pytest.fixture(name="command")
def fixture_command(data_dir, tmp_path, monkeypatch, capsys):
  """Runs the command in `tmp_path/out`; returns its status and output."""
  monkeypatch.setattr(execution, "JOBS", "tests.studies.finetune.fake_jobs")
  # There is no such checkpoint.
  monkeypatch.setattr(finetune.early, "check_finetuning", lambda *a: None)
  monkeypatch.setenv("COLUMNS", "200")

  def run(*rates, **flags):
    status = finetune.run(
      finetune.Options(
        task="SST-2",
        checkpoint="pretrained",
        data_dir=data_dir,
        output_dir=str(tmp_path / "out"),
        learning_rates=rates,
        **flags,
      )
    )
    return status, capsys.readouterr().out

  return run


def _selected(tmp_path):
  return json.loads((tmp_path / "out" / "selection.json").read_text())["best"]


def test_a_bad_run_does_not_stop_the_others(command, tmp_path):
  status, output = command(2, 3, 4, 1)
  assert status == 1 and _selected(tmp_path) == "lr_1_seed_0"
  for text in ("ValueError: no luck", "SIGKILL", "diverged: loss nan"):
    assert output.count(text) == 2  # When it happens, and in the table.
  assert "test accuracy 12.5" in output


def test_what_came_to_an_end_is_not_repeated(command, tmp_path):
  command(1, 2, 4)
  table = (tmp_path / "out" / "table.txt").read_text()
  _, output = command(1, 2, 4)
  assert (tmp_path / "out" / "table.txt").read_text() == table
  calls = {
    rate: (tmp_path / "out" / f"lr_{rate}_seed_0" / "calls.txt").read_text()
    for rate in (1, 2, 4)
  }
  # A failure may be the machine's; a result and a divergence are for good.
  assert {rate: text.count("\n") for rate, text in calls.items()} == {
    1: 1,
    2: 2,
    4: 1,
  }
  assert output.count("finished before") == 2
  # The checkpoint is the one that the first call found.
  assert set("".join(calls.values()).split()) == {"/somewhere/ckpt-7"}


def test_more_rates_can_be_added_but_not_other_settings(command):
  command(1)
  status, output = command(1, 4)
  assert status == 0 and "finished before" in output
  with pytest.raises(errors.UsageError, match="epochs 3.0, but now it is 1.0"):
    command(1, epochs=1.0)


def test_bad_input_stops_the_sweep_and_leaves_no_trace(command, tmp_path):
  with pytest.raises(errors.UsageError, match="the input is bad"):
    command(5, 1)
  assert not (tmp_path / "out").exists()


def test_test_set_is_predicted_once(command, tmp_path, monkeypatch):
  monkeypatch.setattr(protocol, "check_ax", lambda data, ax_data_dir: None)
  path = tmp_path / "out" / "lr_1_seed_0" / "predictions.tsv"
  command(1)
  path.unlink()
  _, output = command(1)
  assert "test accuracy 12.5" in output and not path.exists()
  command(1, ax_data_dir="data/AX")
  assert path.exists()


def test_scores_that_do_not_exist_are_never_selected(command, tmp_path):
  _, output = command(6, 1)
  assert _selected(tmp_path) == "lr_1_seed_0" and " - " in output
  with pytest.raises(errors.Failed, match="has a score"):
    command(6)


def _runs(*rates, seeds=1):
  return [protocol.Run(rate, seed) for seed in range(seeds) for rate in rates]


def test_selection_by_mean_of_complete_rates():
  runs = _runs(1, 2, 3, seeds=2)
  values = {
    (1, 0): 80.0,
    (1, 1): 90.0,
    (2, 0): 86.0,
    (2, 1): 88.0,
    (3, 0): 99.0,
  }
  results = {
    f"lr_{rate}_seed_{seed}": {
      "status": "finished",
      "task": "SST-2",
      "scores": {"dev": {"accuracy": value}},
    }
    for (rate, seed), value in values.items()
  }
  failures = {"lr_3_seed_1": ValueError("gone")}
  rows = table_lib.make_rows(runs, results, failures)
  choice = table_lib.choose(rows, "accuracy")
  # 3 has the best run but not all of them, 1 the best complete run but not
  # the best mean.
  assert choice.run == protocol.Run(2, 1)
  selection = table_lib.selection(choice, "accuracy")
  assert selection["best"] == "lr_2_seed_1"
  assert selection["scores"]["dev/accuracy"] == {
    "mean": 87.0,
    "std": pytest.approx(2**0.5),
    "runs": 2,
  }
  text = io.StringIO()
  rich_console.Console(file=text, width=200).print(
    table_lib.render(rows, choice, "accuracy", "t")
  )
  assert "87.00 +- 1.41" in text.getvalue()
  json.dumps(selection)


def _data(task, **meta):
  return prepared_data.PreparedData("data", {"task": task, **meta}, {})


def test_the_protocol_of_the_paper():
  glue = protocol.plan_runs(_data("SST-2"))
  assert [run.learning_rate for run in glue] == [
    1e-5,
    1.5e-5,
    2e-5,
    3e-5,
    4e-5,
    5e-5,
    7.5e-5,
    1e-4,
    1.2e-4,
  ]
  assert {run.seed for run in glue} == {0}
  squad = protocol.plan_runs(_data("squad_v1.1"))
  assert len(squad) == len(set(squad)) == 45
  assert len({run.name for run in squad}) == 45
  assert len(protocol.plan_runs(_data("squad_v1.1"), [3e-5], 2)) == 2


@pytest.mark.parametrize("rates", [[0.0], [-1e-5], [1e-5, 1e-5]])
def test_bad_learning_rates(rates):
  with pytest.raises(errors.UsageError, match="positive and distinct"):
    protocol.plan_runs(_data("SST-2"), rates)


@pytest.mark.parametrize(
  "task, meta, metric",
  [
    ("squad_v1.1", {"version_2_with_negative": False}, "f1"),
    ("squad_v2.0", {"version_2_with_negative": True}, "best_f1"),
    ("QQP", {}, "f1"),
    ("STS-B", {}, "pearson"),
  ],
)
def test_the_metric_that_selects(task, meta, metric):
  assert protocol.selecting_metric(_data(task, **meta)) == metric


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


@pytest.mark.parametrize(
  "content", ["{}", "[]", '{"settings": {"x": 1}, "checkpoint": "c"}']
)
def test_a_sweep_file_of_somebody_else_is_one_line(command, tmp_path, content):
  (tmp_path / "out").mkdir()
  (tmp_path / "out" / "sweep.json").write_text(content)
  with pytest.raises(errors.UsageError, match="sweep.json was not written by"):
    command(1)
