"""`swe score` as a user runs it: one JSON line, or one line about a fault."""

import json
import subprocess
import sys

import pytest


def _run(*args):
  return subprocess.run(
    [sys.executable, "-m", "swe_tf.commands.score", *map(str, args)],
    capture_output=True,
    text=True,
    check=False,
  )


@pytest.fixture
def squad_files(tmp_path):
  data, predictions = tmp_path / "dev.json", tmp_path / "predictions.json"
  data.write_text(
    json.dumps(
      {
        "data": [
          {
            "title": "t",
            "paragraphs": [
              {
                "context": "the Rhine",
                "qas": [
                  {"id": "q1", "answers": [{"text": "Rhine"}]},
                  {"id": "q2", "answers": []},
                ],
              }
            ],
          }
        ]
      }
    )
  )
  predictions.write_text('{"q1": "The Rhine.", "q2": "x"}')
  return data, predictions


def test_squad(squad_files, tmp_path):
  data, predictions = squad_files
  na_probs = tmp_path / "na.json"
  na_probs.write_text('{"q1": -3.5, "q2": 4.0}')
  result = _run(
    "squad",
    "--version=2.0",
    f"--data={data}",
    f"--predictions={predictions}",
    f"--na_probs={na_probs}",
    "--na_prob_threshold=9",
  )
  assert result.stderr == ""
  assert result.stdout.count("\n") == 1
  scores = json.loads(result.stdout)
  assert scores["exact_match"] == scores["f1"] == 50.0
  assert scores["best_f1"] == 100.0
  assert scores["best_f1_thresh"] == -3.5


def test_undefined_correlation_is_null(tmp_path):
  data, predictions = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  data.write_text("sentence1\tsentence2\tscore\na\tb\t1.0\na\tb\t2.0\n")
  predictions.write_text("index\tprediction\n0\t3.0\n1\t3.0\n")
  result = _run(
    "glue", "--task=STS-B", f"--data={data}", f"--predictions={predictions}"
  )
  assert json.loads(result.stdout) == {
    "task": "STS-B",
    "pearson": None,
    "spearman": None,
    "total": 2,
  }
  assert "does not exist for constant" in result.stderr


def test_faults_are_one_line(squad_files):
  data, predictions = squad_files
  for args, message in (
    (
      [
        "squad",
        "--version=1.1",
        f"--data={data}",
        f"--predictions={predictions}",
      ],
      f"swe score: {data}:1: q2: no answers, but in v1.1 every question has "
      "one; is this a file of --version=2.0?\n",
    ),
    (
      ["squad", "--version=2.0", f"--data={data}"],
      "swe score: --predictions is missing; see --helpshort.\n",
    ),
  ):
    result = _run(*args)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", message)


def test_starts_without_tensorflow():
  code = (
    "import sys, swe_tf.commands.score, "
    "swe_tf.commands.submission, swe_tf.scoring.glue; "
    "sys.exit('tensorflow' in sys.modules)"
  )
  # The two commands share no flag, so that one process can hold both.
  subprocess.run([sys.executable, "-c", code], check=True)
