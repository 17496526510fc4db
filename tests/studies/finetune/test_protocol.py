"""The protocol of the paper, and what is selected from its results."""

import json

import pytest

from swe_tf import errors
from swe_tf.data.prepare import prepared_data
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import table as table_lib


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
  return prepared_data.PreparedData("data", {"task": task, **meta}, {})


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
