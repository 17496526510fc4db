"""`swe report`, `swe score` and `swe theory`: what they write and refuse."""

import dataclasses
import json
import pathlib

import pytest

from swe_tf import errors
from swe_tf.commands import report
from swe_tf.commands import score
from swe_tf.commands import theory
from swe_tf.scoring import squad
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
  pages = {"report.md", "report.html"}
  tables = {"methods.csv", "runs.csv"}
  losses = _figures("loss_1", "loss_1_steps")
  scores = ("validation_loss", "mlm_accuracy")
  figures = losses | _figures(
    "differences_1", *(f"untie_step_1_{score}" for score in scores)
  )
  assert set(first) == pages | tables | figures

  _report(tmp_path / "runs", output)
  again = {name: (output / name).read_bytes() for name in _names(output)}
  assert again == first, "it depends on nothing else"
  _report(tmp_path / "runs" / "a", output)
  assert _names(output) == pages | tables | losses, (
    "what is no longer true is gone"
  )
  with pytest.raises(errors.UsageError, match="is a file"):
    _report(tmp_path / "runs", tmp_path / "runs" / "a" / "params.yaml")


def test_what_no_report_wrote_is_not_touched(tmp_path):
  output = tmp_path / "report"
  write_run(tmp_path / "run", config(), 2.0)
  output.mkdir()
  (output / "report.md").write_text("mine")
  with pytest.raises(errors.UsageError, match=r"no report wrote .report\.md"):
    _report(tmp_path / "run", output)
  assert _names(output) == {"report.md"}
  (output / "report.md").unlink()
  _report(tmp_path / "run", output)
  (output / "notes.txt").write_text("mine")
  with pytest.raises(errors.UsageError, match=r"notes\.txt"):
    _report(tmp_path / "run", output)


@pytest.mark.parametrize(
  "content, words",
  [
    (None, "no pre-training run"),
    ("a: [1", "not YAML"),
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


@pytest.mark.parametrize("rows", [1, 2])
def test_undefined_correlation_is_null(tmp_path, capsys, rows):
  data, predictions = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  scores = [f"a\tb\t{i + 1}.0\n" for i in range(rows)]
  data.write_text("sentence1\tsentence2\tscore\n" + "".join(scores))
  answers = [f"{i}\t3.0\n" for i in range(rows)]
  predictions.write_text("index\tprediction\n" + "".join(answers))
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
    "total": rows,
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
    (
      {"benchmark": "squad", "version": "2.0", "na_prob_threshold": 0.5},
      "needs --na_probs",
    ),
  ):
    with pytest.raises(errors.UsageError, match=message):
      score.Options(**flags, **squad_files)
  path = squad_files["predictions"]
  for content, message in (
    ('{"q1": "a", "q1": "b"}', "'q1' occurs twice"),
    ("[" * 10**5, "recursion"),
    ('{"q1": %s}' % ("1" * 5000), "digits"),
    ('{"q1": NaN}', "question q1 has nan, not a number"),
  ):
    path.write_text(content)
    with pytest.raises(errors.UsageError, match=message):
      squad.read_na_probs(path)


def test_a_proved_claim_that_fails_is_an_error(tmp_path, capsys):
  output_dir = tmp_path / "new"
  options = theory.Options(
    experiments=("theorem3",), output_dir=str(output_dir), step_scale=2.0
  )
  assert theory.run(options) == 1
  assert "5 of 6 claims hold" in capsys.readouterr().out
  rows = json.loads((output_dir / "claims.json").read_text(encoding="utf-8"))
  assert [row["source"] for row in rows if not row["holds"]] == ["Lemma"]
  assert (output_dir / "claims.md").exists()


def test_claims_that_hold_are_a_success(tmp_path, capsys):
  options = theory.Options(
    experiments=("figure2", "proposition1"), output_dir=str(tmp_path)
  )
  assert theory.run(options) == 0
  printed = capsys.readouterr()
  assert "11 of 11 claims hold" in printed.out
  assert (tmp_path / "figure2.png").exists()
  assert not printed.err
  wrong = dataclasses.replace(options, output_dir=__file__)
  with pytest.raises(errors.UsageError, match=__file__):
    theory.run(wrong)
