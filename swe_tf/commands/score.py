r"""The `swe score` command: one JSON line of official scores, in percent.

    swe score squad --version=1.1 --data=dev-v1.1.json --predictions=FILE.json
    swe score squad --version=2.0 --data=dev-v2.0.json --predictions=FILE.json \
      --na_probs=FILE.json
    swe score glue --task=SST-2 --data=dev.tsv --predictions=FILE.tsv
"""

from collections.abc import Sequence
import json
import math
import sys
from typing import Any

from absl import app
from absl import flags

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.squad import questions as squad_questions
from swe_tf.scoring import glue_predictions
from swe_tf.scoring import squad

_DATA = flags.DEFINE_string(
  "data", None, "The file with the right answers: SQuAD JSON or GLUE TSV."
)
_PREDICTIONS = flags.DEFINE_string(
  "predictions",
  None,
  "SQuAD: a JSON object of answers by question id. "
  "GLUE: a TSV file with the columns index and prediction.",
)
_VERSION = flags.DEFINE_enum(
  "version", None, squad_questions.VERSIONS, "The version of SQuAD."
)
_NA_PROBS = flags.DEFINE_string(
  "na_probs",
  None,
  "SQuAD v2.0: a JSON object of no-answer probabilities or "
  "log odds by question id.",
)
_NA_PROB_THRESHOLD = flags.DEFINE_float(
  "na_prob_threshold",
  1.0,
  "With --na_probs: above it, a question is taken to have no answer.",
)
_TASK = flags.DEFINE_string("task", None, "A GLUE task, such as SST-2 or MNLI.")


def _score_squad() -> dict[str, Any]:
  files.require(
    version=_VERSION.value, data=_DATA.value, predictions=_PREDICTIONS.value
  )
  if _NA_PROBS.value and _VERSION.value != "2.0":
    raise errors.UsageError(
      "--na_probs is for --version=2.0: in v1.1 every question has an answer."
    )
  return {
    "task": f"squad_v{_VERSION.value}",
    **squad.evaluate(
      squad_questions.read_squad_file(_DATA.value, _VERSION.value),
      squad.read_predictions(_PREDICTIONS.value),
      na_probs=(
        squad.read_na_probs(_NA_PROBS.value) if _NA_PROBS.value else None
      ),
      na_prob_threshold=_NA_PROB_THRESHOLD.value,
    ),
  }


def _score_glue() -> dict[str, Any]:
  files.require(
    task=_TASK.value, data=_DATA.value, predictions=_PREDICTIONS.value
  )
  task = glue_tasks.find_task(_TASK.value)
  labels, predictions = glue_predictions.align(
    glue_examples.read_glue_file(_DATA.value, task),
    glue_predictions.read_predictions(_PREDICTIONS.value, task),
    _PREDICTIONS.value,
  )
  # scikit-learn takes a second to import, which SQuAD need not wait for.
  from swe_tf.scoring import glue  # pylint: disable=g-import-not-at-top

  return {
    "task": task.name,
    **glue.evaluate(task, labels, predictions),
    "total": len(labels),
  }


_BENCHMARKS = {"squad": _score_squad, "glue": _score_glue}


@files.one_line_errors("swe score")
def main(argv: Sequence[str]) -> None:
  """Prints the scores; warnings go to stderr."""
  if len(argv) != 2 or argv[1] not in _BENCHMARKS:
    raise errors.UsageError(
      f"say `swe score squad` or `swe score glue`, not {argv[1:]}."
    )
  scores = _BENCHMARKS[argv[1]]()
  if scores.get("missing"):
    print(
      f"swe score: {scores['missing']} of {scores['total']} questions "
      "have no prediction and count as wrong.",
      file=sys.stderr,
    )
  undefined = [
    name
    for name, value in scores.items()
    if isinstance(value, float) and math.isnan(value)
  ]
  if undefined:
    print(
      f"swe score: {', '.join(undefined)} does not exist for constant "
      "predictions.",
      file=sys.stderr,
    )
  print(
    json.dumps(
      {
        name: None if name in undefined else value
        for name, value in scores.items()
      }
    )
  )


if __name__ == "__main__":
  app.run(main)
