r"""Prints official scores, in percent, as one JSON line.

    swe score squad --version=1.1 --data=dev-v1.1.json --predictions=FILE.json
    swe score squad --version=2.0 --data=dev-v2.0.json --predictions=FILE.json \
      --na_probs=FILE.json
    swe score glue --task=SST-2 --data=dev.tsv --predictions=FILE.tsv

docs/scoring.md has the metrics, and where other scripts differ.
"""

import dataclasses
import json
import math
import sys
from typing import Any

from swe_tf import errors
from swe_tf.commands import options as opt
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.squad import questions
from swe_tf.scoring import glue
from swe_tf.scoring import squad


@dataclasses.dataclass(frozen=True)
class Options:
  benchmark: str = opt.argument("The benchmark.", choices=("squad", "glue"))
  data: str = opt.flag("The right answers: SQuAD JSON or GLUE TSV.")
  predictions: str = opt.flag(
    "SQuAD: a JSON object of answers by question id. GLUE: a TSV file with the "
    "columns index and prediction."
  )
  version: str = opt.flag(
    "The version of SQuAD.", "", choices=questions.VERSIONS
  )
  na_probs: str | None = opt.flag(
    "SQuAD v2.0: JSON of no-answer probabilities or log odds by id.", None
  )
  na_prob_threshold: float = opt.flag(
    "With --na_probs: above this, a question counts as having no answer.", 1.0
  )
  task: str = opt.flag("A GLUE task, such as SST-2 or MNLI.", "")

  def __post_init__(self):
    needed = {"squad": "version", "glue": "task"}[self.benchmark]
    if not getattr(self, needed):
      raise errors.UsageError(f"--{needed} is missing; see --help.")
    if self.na_probs and self.version != "2.0":
      raise errors.UsageError(
        "--na_probs is for --version=2.0: in v1.1 every question has an answer."
      )
    if self.na_prob_threshold != 1.0 and not self.na_probs:
      raise errors.UsageError(
        f"--na_prob_threshold={self.na_prob_threshold} needs --na_probs, the "
        "probabilities that it is compared with."
      )


def run(options: Options) -> None:
  scores: dict[str, Any]
  warnings = []
  if options.benchmark == "squad":
    scores = {"task": f"squad_v{options.version}"} | squad.evaluate(
      questions.read_squad_file(options.data, options.version),
      squad.read_predictions(options.predictions),
      na_probs=squad.read_na_probs(options.na_probs)
      if options.na_probs
      else None,
      na_prob_threshold=options.na_prob_threshold,
    )
  else:
    task = glue_tasks.find_task(options.task)
    file = glue_examples.read_glue_file(options.data, task)
    labels, predictions = glue.align(
      file,
      glue.read_predictions(options.predictions, task),
      options.predictions,
    )
    scores = {"task": task.name} | glue.evaluate(task, labels, predictions)
    scores["total"] = len(labels)
    if file.dropped:
      warnings.append(
        f"{file.dropped} rows of {file.path} do not count{task.why_dropped}."
      )
  if scores.get("missing"):
    warnings.append(
      f"{scores['missing']} of {scores['total']} questions have no prediction "
      "and count as wrong."
    )
  if scores.get("extra"):
    warnings.append(f"{scores['extra']} predictions are for other questions.")
  for name, value in scores.items():
    if isinstance(value, float) and math.isnan(value):
      scores[name] = None  # JSON has no NaN.
      warnings.append(f"{name} is undefined for constant predictions.")
  for warning in warnings:
    print(f"warning: {warning}", file=sys.stderr)
  print(json.dumps(scores))
