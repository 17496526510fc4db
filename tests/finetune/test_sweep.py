"""Sweeps with a worker that only pretends: what is run, kept and selected."""

import io
import json

import pytest
from rich import console as rich_console

from swe_tf import errors
from swe_tf.data.prepare import prepared_data
from swe_tf.finetune import plan
from swe_tf.finetune import progress as progress_lib
from swe_tf.finetune import sweep as sweep_lib
from swe_tf.finetune import table as table_lib
from swe_tf.finetune import worker_process

_SETTINGS = plan.Settings(data_dir="data", checkpoint="pretrained")


def _runs(*rates, seeds=1):
  return [plan.Run(rate, seed) for seed in range(seeds) for rate in rates]


def _execute(output_dir, runs, settings=_SETTINGS, predict=None):
  """Runs a sweep; returns its outcome and what a person sees."""
  seen = io.StringIO()
  console = rich_console.Console(file=seen, width=200)
  sweep = sweep_lib.Sweep(settings, runs, output_dir)
  with worker_process.WorkerProcess("tests.finetune.fake_worker") as worker:
    with progress_lib.SweepProgress(console, len(runs), "accuracy") as progress:
      outcome = sweep.execute(worker, progress)
      if predict is not None:
        sweep.predict(worker, runs[0], predict, progress)
  return outcome, seen.getvalue()


def _table(runs, outcome):
  rows = table_lib.make_rows(runs, outcome.results, outcome.failures)
  choice = table_lib.choose(rows, "accuracy")
  text = io.StringIO()
  rich_console.Console(file=text, width=200).print(
    table_lib.render(rows, choice, "accuracy", "title")
  )
  return choice, text.getvalue()


def test_a_bad_run_does_not_stop_the_others(tmp_path):
  runs = _runs(2, 3, 4, 1)
  outcome, seen = _execute(tmp_path, runs)
  assert {
    run.learning_rate: result["status"]
    for run, result in outcome.results.items()
  } == {4: "diverged", 1: "finished"}
  failures = {run.learning_rate: text for run, text in outcome.failures.items()}
  assert "ValueError: no luck" in failures[2]
  assert "SIGKILL" in failures[3]
  assert all("log.txt" in text for text in failures.values())
  choice, table = _table(runs, outcome)
  assert choice.run == plan.Run(1, 0)
  for text in (seen, table):
    assert "no luck" in text and "SIGKILL" in text and "loss nan" in text


def test_what_came_to_an_end_is_not_repeated(tmp_path):
  runs = _runs(1, 2, 4)
  first, _ = _execute(tmp_path, runs)
  second, seen = _execute(tmp_path, runs)
  assert second == first
  assert _table(runs, second)[1] == _table(runs, first)[1]
  calls = {
    run.learning_rate: (tmp_path / run.name / "calls.txt").read_text()
    for run in runs
  }
  # A failure may be the machine's; a result and a divergence are for good.
  assert {rate: text.count("\n") for rate, text in calls.items()} == {
    1: 1,
    2: 2,
    4: 1,
  }
  assert seen.count("finished before") == 2
  # The checkpoint is the one that the first call found.
  assert set("".join(calls.values()).split()) == {"/somewhere/ckpt-7"}


def test_more_rates_can_be_added_but_not_other_settings(tmp_path):
  _execute(tmp_path, _runs(1))
  outcome, seen = _execute(tmp_path, _runs(1, 4))
  assert len(outcome.results) == 2 and "finished before" in seen
  other = plan.Settings(data_dir="data", checkpoint="pretrained", epochs=1.0)
  with pytest.raises(errors.UsageError, match="epochs 3.0, but now it is 1.0"):
    _execute(tmp_path, _runs(1), other)


def test_bad_input_stops_the_sweep_and_leaves_no_trace(tmp_path):
  output_dir = tmp_path / "out"
  with pytest.raises(errors.UsageError, match="the input is bad"):
    _execute(output_dir, _runs(5, 1))
  assert not output_dir.exists()


def test_time_left_is_told(tmp_path):
  _, seen = _execute(tmp_path, _runs(1, seeds=3))
  assert "accuracy 51.00" in seen and " left" in seen


def test_test_set_is_predicted_once(tmp_path):
  run = _runs(1)
  _, seen = _execute(tmp_path, run, predict="")
  assert "test accuracy 12.5" in seen
  path = tmp_path / run[0].name / "predictions.tsv"
  path.unlink()
  _, seen = _execute(tmp_path, run, predict="")
  assert "test accuracy 12.5" in seen and not path.exists()
  _execute(tmp_path, run, predict="data/AX")
  assert path.exists()


def _result(*values, split="dev", metric="accuracy", task="SST-2"):
  return [
    {"status": "finished", "task": task, "scores": {split: {metric: value}}}
    for value in values
  ]


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
    run: _result(values[run.learning_rate, run.seed])[0]
    for run in runs
    if (run.learning_rate, run.seed) in values
  }
  failures = {plan.Run(3, 1): "gone"}
  rows = table_lib.make_rows(runs, results, failures)
  choice = table_lib.choose(rows, "accuracy")
  # 3 has the best run but not all of them, 1 the best complete run but not
  # the best mean.
  assert choice.run == plan.Run(2, 1)
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


def test_scores_that_do_not_exist_are_never_selected(tmp_path):
  runs = _runs(6, 1)
  outcome, _ = _execute(tmp_path, runs)
  choice, table = _table(runs, outcome)
  assert choice.run == plan.Run(1, 0) and " - " in table
  choice, _ = _table(runs[:1], outcome)
  assert choice is None


def _data(task, **meta):
  return prepared_data.PreparedData("data", {"task": task, **meta}, {})


def test_the_protocol_of_the_paper():
  glue = plan.plan_runs(_data("SST-2"))
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
  squad = plan.plan_runs(_data("squad_v1.1"))
  assert len(squad) == len(set(squad)) == 45
  assert len({run.name for run in squad}) == 45
  assert len(plan.plan_runs(_data("squad_v1.1"), [3e-5], 2)) == 2


@pytest.mark.parametrize("rates", [[0.0], [-1e-5], [1e-5, 1e-5]])
def test_bad_learning_rates(rates):
  with pytest.raises(errors.UsageError, match="positive and different"):
    plan.plan_runs(_data("SST-2"), rates)


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
  assert plan.selecting_metric(_data(task, **meta)) == metric


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
    plan.check_task(asked, _data(prepared))
