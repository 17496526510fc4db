"""Exact match and F1 of SQuAD v1.1 and v2.0, as in the official scripts.

Scores are percentages. Unlike in Model Garden's v2.0 script, a question without
a prediction counts as wrong (there it is left out of the mean), and predictions
for unknown questions are ignored (there they raise).
"""

import collections
from collections.abc import Mapping, Sequence
import math
import re
import string
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.data.squad import questions as squad_questions

_PUNCTUATION = str.maketrans("", "", string.punctuation)
# In composed names, such as HasAns_exact, the official scripts say "exact".
_SHORT = {"exact_match": "exact"}
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
  """Lowercases, and removes punctuation, articles and extra white space.

  >>> normalize_answer("The  Rhine, a river.")
  'rhine river'
  """
  text = text.lower().translate(_PUNCTUATION)
  return " ".join(_ARTICLES.sub(" ", text).split())


def token_f1(prediction: Sequence[str], gold: Sequence[str]) -> float:
  """Returns the F1 of two bags of tokens; 0 if one of them is empty."""
  common = collections.Counter(prediction) & collections.Counter(gold)
  same = sum(common.values())
  if not same:
    return 0.0
  precision, recall = same / len(prediction), same / len(gold)
  return 2 * precision * recall / (precision + recall)


def evaluate(
  squad: squad_questions.SquadFile,
  predictions: Mapping[str, str],
  *,
  na_probs: Mapping[str, float] | None = None,
  na_prob_threshold: float = 1.0,
) -> dict[str, Any]:
  """Scores predictions by question id, which are empty for no answer (v2.0).

  `na_probs` are, for v2.0, probabilities or log odds of no answer, which counts
  as predicted above the threshold. Returns percentages as in docs/scoring.md:
  of all questions, for v2.0 of those with and without answers, and with
  `na_probs` at the best thresholds.
  """
  questions = {question.id: question for question in squad.questions}
  answered = [name for name in questions if name in predictions]
  if not answered:
    raise errors.UsageError(
      f"none of the {len(predictions)} predictions is for one of the "
      f"{len(questions)} questions of {squad.path}; do the files belong "
      "together?"
    )
  pairs = [
    _score(predictions[name], questions[name], squad.version)
    for name in answered
  ]
  raw = {
    metric: dict(zip(answered, scores))
    for metric, scores in zip(("exact_match", "f1"), zip(*pairs))
  }

  found = raw
  if na_probs is not None:
    unsure = [name for name in answered if name not in na_probs]
    if unsure:
      raise errors.UsageError(
        f"no no-answer probability for question {unsure[0]}, which has a "
        "prediction."
      )
    # Silence is right where there is no answer, and wrong everywhere else.
    silent = {
      name: float(not questions[name].answers)
      for name in answered
      if na_probs[name] > na_prob_threshold
    }
    found = {metric: scores | silent for metric, scores in raw.items()}

  result = _means(found, list(questions))
  result["missing"] = len(questions) - len(answered)
  result["extra"] = len(predictions) - len(answered)
  if squad.version == "2.0":
    for prefix, has_answer in (("HasAns", True), ("NoAns", False)):
      part = [q.id for q in squad.questions if bool(q.answers) == has_answer]
      for key, value in (_means(found, part) if part else {}).items():
        result[f"{prefix}_{_SHORT.get(key, key)}"] = value
  if na_probs is not None:
    for metric, scores in raw.items():
      best = _best_threshold(scores, predictions, na_probs, questions)
      key = f"best_{_SHORT.get(metric, metric)}"
      result[key], result[f"{key}_thresh"] = best
  return result


def _score(prediction, question, version) -> tuple[float, float]:
  """Returns exact match and F1 against the best-matching gold answer."""
  golds = [normalize_answer(answer.text) for answer in question.answers]
  if version == "2.0":
    # The official script drops answers of articles or punctuation alone.
    golds = [gold for gold in golds if gold] or [""]
  prediction = normalize_answer(prediction)
  exact = float(prediction in golds)
  if version == "2.0" and not prediction:
    return exact, exact
  tokens = prediction.split()
  return exact, max(token_f1(tokens, gold.split()) for gold in golds)


def _means(found, names: Sequence[str]) -> dict[str, Any]:
  means = {
    metric: 100.0 * sum(scores.get(name, 0.0) for name in names) / len(names)
    for metric, scores in found.items()
  }
  return {**means, "total": len(names)}


def _best_threshold(scores, predictions, na_probs, questions):
  """Returns the best score over all thresholds, and the threshold."""
  # As in the official script, thresholds are tried from "no question has an
  # answer" upwards, one question at a time, even within ties.
  current = sum(not questions[name].answers for name in scores)
  best, threshold = current, 0.0
  for name in sorted(na_probs, key=na_probs.get):
    if name not in scores:
      continue
    if questions[name].answers:
      current += scores[name]
    elif predictions[name]:
      current -= 1
    if current > best:
      best, threshold = current, na_probs[name]
  return 100.0 * best / len(questions), threshold


def read_predictions(path: files.PathLike) -> dict[str, str]:
  """Reads a JSON object of texts by question id."""
  return _read_object(path, str, "text")


def read_na_probs(path: files.PathLike) -> dict[str, float]:
  """Reads a JSON object of no-answer probabilities by question id."""
  return _read_object(path, (int, float), "a number")


def _read_object(path, kind, kind_name):
  content = files.read_object(path)
  for name, value in content.items():
    is_nan = isinstance(value, float) and not math.isfinite(value)
    if not isinstance(value, kind) or isinstance(value, bool) or is_nan:
      raise errors.UsageError(
        f"{path}: question {name} has {value!r:.60}, not {kind_name}."
      )
  return content
