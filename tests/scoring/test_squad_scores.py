"""SQuAD scores against the scripts that Model Garden ships."""

import json
import random

import pytest

from official.nlp.tools import squad_evaluate_v1_1
from official.nlp.tools import squad_evaluate_v2_0
from swe_tf import errors
from swe_tf.data.squad import questions as squad_questions
from swe_tf.scoring import squad

_WORDS = (
  *("the", "The", "a", "An", "Rhine", "rhine,", "river.", "É", "日本", "x-y"),
  *("'s", "50", "!", "\u00a0", "İ", "than"),
)


def _theirs(version, data, predictions, na_probs=None):
  """Returns the scores of Model Garden's script under our names."""
  if version == "1.1":
    scores = squad_evaluate_v1_1.evaluate(data, predictions)
    return {
      "exact_match": 100 * scores["exact_match"],
      "f1": 100 * scores["final_f1"],
    }
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
  predictions = squad.read_predictions(
    shared / f"data/squad/published_predictions/{name}.json"
  )
  ours = squad.evaluate(
    squad_questions.read_squad_file(path, version), predictions
  )
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
  ours = squad.evaluate(
    squad_questions.read_squad_file(path, version),
    predictions,
    na_probs=na_probs,
  )
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
