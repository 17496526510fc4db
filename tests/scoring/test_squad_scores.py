"""SQuAD scores against Model Garden's scripts, GLUE against scikit-learn."""

import json
import math
import random

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from official.nlp.tools import squad_evaluate_v1_1
from official.nlp.tools import squad_evaluate_v2_0
from swe_tf import errors
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.squad import questions as squad_questions
from swe_tf.scoring import glue
from swe_tf.scoring import squad

_WORDS = (
  *("the", "The", "a", "An", "Rhine", "rhine,", "river.", "É", "日本", "x-y"),
  *("'s", "50", "!", "\u00a0", "İ", "than"),
)


def _theirs(version, data, predictions, na_probs=None):
  """Returns the scores of Model Garden's script under our names."""
  if version == "1.1":
    scores = squad_evaluate_v1_1.evaluate(data, predictions)
    names = {"exact_match": "exact_match", "f1": "final_f1"}
    return {ours: 100 * scores[theirs] for ours, theirs in names.items()}
  scores = squad_evaluate_v2_0.evaluate(data, predictions, na_probs)
  scores["exact_match"] = scores.pop("exact")
  for name in ("exact", "f1"):
    scores[f"best_{name}"] = scores.pop(f"final_{name}")
    scores[f"best_{name}_thresh"] = scores.pop(f"final_{name}_thresh")
    scores.pop(f"pr_{name}_ap", None)
  scores.pop("pr_oracle_ap", None)
  return scores


def _random_data(rng, count=60):
  """Returns random questions, a quarter without answer."""

  def text(most):
    return " ".join(rng.choices(_WORDS, k=rng.randint(0, most)))

  qas = [
    {
      "id": str(index),
      "question": "?",
      "answers": [
        {"text": text(5), "answer_start": 0}
        for _ in range(0 if index % 4 == 0 else rng.randint(1, 3))
      ],
    }
    for index in range(count)
  ]
  predictions = {
    qa["id"]: rng.choice([a["text"] for a in qa["answers"]] + [text(5), ""])
    for qa in qas
  }
  na_probs = {qa["id"]: rng.random() for qa in qas}
  return qas, predictions, na_probs


def _write(tmp_path, qas):
  data = [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]
  path = tmp_path / "dev.json"
  path.write_text(json.dumps({"data": data}))
  return path, data


_PUBLISHED = "v1.1_bert_ensemble v1.1_logistic_regression v2.0_bert_single"


@pytest.mark.parametrize("name", [*_PUBLISHED.split(), "v2.0_nlnet"])
def test_published_predictions(shared, name):
  version = name[1:4]
  path = shared / f"data/squad/dev-v{version}.json"
  published = shared / "data/squad/published_predictions"
  predictions = squad.read_predictions(published / f"{name}.json")
  read = squad_questions.read_squad_file(path, version)
  ours = squad.evaluate(read, predictions)
  theirs = _theirs(version, json.loads(path.read_text())["data"], predictions)
  for key in theirs:
    if not key.startswith("best_"):  # They search in zeros; see the docs.
      assert ours[key] == pytest.approx(theirs[key], abs=1e-6), key


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("version", squad_questions.VERSIONS)
def test_random_answers(tmp_path, version, seed):
  qas, predictions, na_probs = _random_data(random.Random(seed))
  if version == "1.1":
    qas = [qa for qa in qas if qa["answers"]]
    na_probs = None
  path, data = _write(tmp_path, qas)
  read = squad_questions.read_squad_file(path, version)
  ours = squad.evaluate(read, predictions, na_probs=na_probs)
  theirs = _theirs(version, data, predictions, na_probs)
  for key, value in theirs.items():
    assert ours[key] == pytest.approx(value, abs=1e-6), key
  assert set(ours) - set(theirs) <= {"total", "missing", "extra"}


def test_threshold_turns_answers_into_none(tmp_path):
  qas = [
    {"id": "right", "answers": [{"text": "Rhine"}]},
    {"id": "lost", "answers": [{"text": "Rhine"}]},
    {"id": "none", "answers": []},
  ]
  path, _ = _write(tmp_path, qas)
  scores = squad.evaluate(
    squad_questions.read_squad_file(path, "2.0"),
    {"right": "Rhine", "lost": "Rhine", "none": "Rhine"},
    na_probs={"right": 0.5, "lost": 0.6, "none": 0.7},
    na_prob_threshold=0.5,
  )
  assert (scores["HasAns_f1"], scores["NoAns_f1"]) == (50.0, 100.0)
  assert (scores["best_f1"], scores["best_f1_thresh"]) == (100.0, 0.6)


@pytest.mark.parametrize("version", squad_questions.VERSIONS)
def test_missing_predictions_are_wrong_and_extra_ones_ignored(
  tmp_path, version
):
  qas = [
    {"id": str(index), "answers": [{"text": "Rhine"}]} for index in range(4)
  ]
  path, _ = _write(tmp_path, qas)
  scores = squad.evaluate(
    squad_questions.read_squad_file(path, version),
    {"0": "the rhine", "1": "Rhine", "other": "Rhine"},
  )
  assert scores["exact_match"] == scores["f1"] == 50.0
  assert (scores["total"], scores["missing"], scores["extra"]) == (4, 2, 1)


def test_faults(tmp_path):
  path, _ = _write(tmp_path, [{"id": "q1", "answers": [{"text": "x"}]}])
  data = squad_questions.read_squad_file(path, "2.0")
  with pytest.raises(errors.UsageError, match="belong together"):
    squad.evaluate(data, {"q2": "x"})
  with pytest.raises(errors.UsageError, match="probability for question q1"):
    squad.evaluate(data, {"q1": "x"}, na_probs={})
  for content, message in (
    ('{"q1":\n ["x"]}', r"question q1 has \['x'\]"),
    ('{"q1":\n x}', "dev.json:2: not JSON"),
    ("[]", "not a JSON object"),
  ):
    path.write_text(content)
    with pytest.raises(errors.UsageError, match=message):
      squad.read_predictions(path)


_REFERENCE = {
  "accuracy": metrics.accuracy_score,
  "f1": metrics.f1_score,
  "matthews_corrcoef": metrics.matthews_corrcoef,
  "pearson": lambda a, b: stats.pearsonr(a, b)[0],
  "spearman": lambda a, b: stats.spearmanr(a, b)[0],
}


def _score_files(tmp_path, task, labels, predictions):
  """Writes a dev file and a prediction file, and scores them."""
  names = [*(columns[0] for columns in task.texts), task.label[0]]
  texts = ['a "text'] * len(task.texts)
  as_text = lambda label: (
    f"{label:.3f}" if task.is_regression else task.labels[label]
  )
  rows = [names, *([*texts, as_text(label)] for label in labels)]
  data, path = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  data.write_text("\n".join(map("\t".join, rows)))
  path.write_text(glue.format_predictions(dict(enumerate(predictions)), task))
  read = glue.read_predictions(path, task)
  glue_file = glue_examples.read_glue_file(data, task)
  return glue.evaluate(task, *glue.align(glue_file, read, path))


@pytest.mark.parametrize("name", glue_tasks.TASKS)
def test_random_predictions(tmp_path, name):
  task = glue_tasks.find_task(name)
  rng = np.random.default_rng(len(name))
  if task.is_regression:
    # Two digits make ties, which is what Spearman has to get right.
    labels, predictions = rng.uniform(0, 5, [2, 200]).round(1)
  else:
    labels, predictions = rng.integers(0, len(task.labels), [2, 200])
  scores = _score_files(tmp_path, task, labels, predictions)
  assert list(scores) == list(task.metrics)
  for metric, score in scores.items():
    expected = 100 * _REFERENCE[metric](labels, predictions)
    assert score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
  "name, scores",
  [
    ("CoLA", {"matthews_corrcoef": 0.0}),
    ("QQP", {"f1": 0.0, "accuracy": 50.0}),
    # A constant has no correlation.
    ("STS-B", {"pearson": math.nan, "spearman": math.nan}),
  ],
)
def test_constant_predictions(tmp_path, name, scores):
  task = glue_tasks.find_task(name)
  found = _score_files(tmp_path, task, [0, 1] * 4, [0] * 8)
  assert found == pytest.approx(scores, nan_ok=True)


def test_scores_are_moved_into_the_range_of_the_labels():
  task = glue_tasks.find_task("STS-B")
  text = glue.format_predictions({1: 5.2, 0: -0.1}, task)
  assert text == "index\tprediction\n0\t0.000\n1\t5.000\n"
  with pytest.raises(ValueError, match="nan"):
    glue.format_predictions({0: math.nan}, task)


@pytest.mark.parametrize(
  "content, message",
  [
    ("prediction\tindex\n0\t1\n", r":1: the header is"),
    ("index\tprediction\n0\t1\n0\t1\n", r":3: index 0 occurs twice"),
    ("index\tprediction\n0\t2\n", r":2: label '2' is not one of 0, 1"),
    ("index\tprediction\n-1\t1\n", r":2: '-1\\t1' is not a row number"),
    ("index\tprediction\n0\t1\n", "no prediction for 1 of the 2 rows"),
    ("index\tprediction\n0\t1\n1\t1\n2\t1\n", "index 2, but .* 2 rows"),
  ],
)
def test_faults_in_glue_predictions(tmp_path, content, message):
  task = glue_tasks.find_task("SST-2")
  data, path = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  data.write_text("sentence\tlabel\na\t0\nb\t1\n")
  path.write_text(content)
  with pytest.raises(errors.UsageError, match=message):
    read = glue.read_predictions(path, task)
    glue.align(glue_examples.read_glue_file(data, task), read, path)


def test_every_real_file_is_read(shared):
  """The sizes are those that the GLUE paper and its site give."""
  sizes = {
    "AX": {"diagnostic.tsv": 1104},
    "CoLA": {"train.tsv": 8551, "dev.tsv": 1043, "test.tsv": 1063},
    "MNLI": {"dev_matched.jsonl": 9815},
    "MRPC": {"train.tsv": 3668, "dev.tsv": 408, "test.tsv": 1725},
    "QNLI": {"dev.tsv": 5463, "test.tsv": 5463},
    "QQP": {"dev_subset.tsv": 23496},
    "RTE": {"train.tsv": 2490, "dev.tsv": 277, "test.tsv": 3000},
    "SST-2": {"train.tsv": 67349, "dev.tsv": 872, "test.tsv": 1821}
    | {"test_labeled.tsv": 1821},
    "STS-B": {"train.tsv": 5749, "dev.tsv": 1500, "test.tsv": 1379},
  }
  found, dropped = {}, {}
  for directory in (shared / "data/glue").iterdir():
    task = glue_tasks.find_task(directory.name)
    files = glue_examples.read_glue_directory(directory, task)
    found[task.name] = {file.path.name: len(file.examples) for file in files}
    dropped[task.name] = sum(file.dropped for file in files)
  assert found == sizes
  assert {name: n for name, n in dropped.items() if n} == {"QQP": 1}
