"""From the logits of a span model to the answers that SQuAD scores.

The search for the best span is Model Garden's. One thing differs: an answer is
kept for every question, even where "no answer" scores higher. The no-answer
threshold can then be chosen afterwards (`best_f1` of the official script), not
only lowered.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

from official.nlp.data import squad_lib
from swe_tf import files
from swe_tf.data.squad import records as squad_records


@dataclasses.dataclass(frozen=True)
class Answers:
  """A model's answers, before deciding which questions have none.

  Attributes:
    texts: The best answer to each question, by question id.
    null_odds: The score of "no answer" minus the score of that answer; empty
      for v1.1. The scorer takes it as `na_probs`.
  """

  texts: Mapping[str, str]
  null_odds: Mapping[str, float]

  def decide(self, threshold: float = 0.0) -> dict[str, str]:
    """Returns the predictions: empty where `null_odds` exceed the threshold."""
    odds = {name: self.null_odds.get(name, -math.inf) for name in self.texts}
    return {
      name: "" if odds[name] > threshold else text
      for name, text in self.texts.items()
    }


def answers_from_logits(
  built: squad_records.EvalFeatures,
  results: Sequence[Any],
  *,
  version: str,
  do_lower_case: bool = True,
  n_best_size: int = 20,
  max_answer_length: int = 30,
) -> Answers:
  """Returns the best answer to each question.

  Args:
    built: The windows that the logits belong to.
    results: For each window an object with `unique_id`, `start_logits` and
      `end_logits`, such as Model Garden's `RawAggregatedResult`.
    version: `1.1` or `2.0`.
    do_lower_case: Whether the tokenizer lower-cased the text.
    n_best_size: How many starts and ends are combined.
    max_answer_length: The longest answer in tokens.

  Raises:
    ValueError: If a window has no logits: Model Garden would make up an answer.
  """
  known = {result.unique_id for result in results}
  windows = [feature.unique_id for feature in built.features]
  missing = [window for window in windows if window not in known]
  if missing:
    raise ValueError(
      f"There are no logits for {len(missing)} of {len(windows)} "
      f"windows, such as {missing[0]}; set drop_remainder to False so that "
      "the last batch is not dropped."
    )
  texts, _, null_odds = squad_lib.postprocess_output(
    built.examples,
    built.features,
    results,
    n_best_size=n_best_size,
    max_answer_length=max_answer_length,
    do_lower_case=do_lower_case,
    version_2_with_negative=version == "2.0",
    null_score_diff_threshold=math.inf,  # Keeps every answer; see above.
  )
  odds = {name: float(value) for name, value in null_odds.items()}
  return Answers(dict(texts), odds)


def write_predictions(path: files.PathLike, predictions: Mapping[str, str]):
  """Writes predictions for the official script and `swe score squad`."""
  files.write_json(path, dict(predictions))
