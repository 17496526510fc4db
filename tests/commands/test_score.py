"""`swe score` as a user runs it: one JSON line, or one line about a fault."""

import json

import pytest

from swe_tf import errors
from swe_tf.commands import score


@pytest.fixture
def squad_files(tmp_path):
  data, predictions = tmp_path / "dev.json", tmp_path / "predictions.json"
  qas = [
    {"id": "q1", "answers": [{"text": "Rhine"}]},
    {"id": "q2", "answers": []},
  ]
  paragraph = {"context": "the Rhine", "qas": qas}
  content = {"data": [{"title": "t", "paragraphs": [paragraph]}]}
  data.write_text(json.dumps(content))
  predictions.write_text('{"q1": "The Rhine.", "q2": "x"}')
  return {"data": data, "predictions": predictions}


def test_squad(squad_files, tmp_path, capsys):
  na_probs = tmp_path / "na.json"
  na_probs.write_text('{"q1": -3.5, "q2": 4.0}')
  no_answer = {"na_probs": na_probs, "na_prob_threshold": 9.0}
  score.run(
    score.Options(benchmark="squad", version="2.0", **squad_files, **no_answer)
  )
  printed = capsys.readouterr()
  assert printed.err == ""
  assert printed.out.count("\n") == 1
  scores = json.loads(printed.out)
  assert scores["exact_match"] == scores["f1"] == 50.0
  assert scores["best_f1"] == 100.0
  assert scores["best_f1_thresh"] == -3.5


def test_undefined_correlation_is_null(tmp_path, capsys):
  data, predictions = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  data.write_text("sentence1\tsentence2\tscore\na\tb\t1.0\na\tb\t2.0\n")
  predictions.write_text("index\tprediction\n0\t3.0\n1\t3.0\n")
  score.run(
    score.Options(
      benchmark="glue", task="STS-B", data=data, predictions=predictions
    )
  )
  printed = capsys.readouterr()
  assert json.loads(printed.out) == {
    "task": "STS-B",
    "pearson": None,
    "spearman": None,
    "total": 2,
  }
  assert "is undefined for constant" in printed.err


def test_faults(squad_files):
  options = score.Options(benchmark="squad", version="1.1", **squad_files)
  with pytest.raises(errors.UsageError) as error:
    score.run(options)
  assert str(error.value) == (
    f"{options.data}:1: q2: no answers, but in v1.1 every question has one; is "
    "this v2.0?"
  )
  for flags, message in (
    ({"benchmark": "squad"}, "--version is missing"),
    ({"benchmark": "glue"}, "--task is missing"),
    ({"benchmark": "squad", "version": "1.1", "na_probs": "x"}, "--na_probs"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      score.Options(**flags, **squad_files)
