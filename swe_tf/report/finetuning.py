"""The fine-tuning scores of pre-trained runs: what `swe finetune` left.

A score belongs to the run whose last checkpoint was fine-tuned. GLUE scores
are those of the dev sets, where the paper has the test sets. Imports no
TensorFlow.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import json
import pathlib
import re
import statistics
from typing import Any

from swe_tf import files
from swe_tf.report import found_runs
from swe_tf.scoring import averages

# By task: where its `selection.json` has the rows of the paper's tables.
_ROWS = {
  "squad_v1.1": {"squad_v1.1": "eval/f1"},
  "squad_v2.0": {"squad_v2.0": "eval/best_f1"},
  "MNLI": {
    "MNLI-m": "dev_matched/accuracy",
    "MNLI-mm": "dev_mismatched/accuracy",
  },
  "QNLI": {"QNLI": "dev/accuracy"},
  "QQP": {"QQP": "dev/f1"},
  "SST-2": {"SST-2": "dev/accuracy"},
}


@dataclasses.dataclass(frozen=True)
class FineTuning:
  """A directory of `swe finetune`.

  Attributes:
    name: The directory, relative to where it was looked for.
    task: The task.
    checkpoint: What was fine-tuned.
    protocol: The settings that scores must have in common to be compared.
    scores: In percent, by the rows of the paper's tables.
  """

  name: str
  task: str
  checkpoint: pathlib.Path
  protocol: str
  scores: Mapping[str, float]


def read_finetunings(roots: Sequence[files.PathLike]) -> list[FineTuning]:
  """Reads all directories of `swe finetune` that selected a run."""
  found = []
  for name, directory in found_runs.directories_with(roots, "sweep.json"):
    sweep = files.read_json(directory / "sweep.json")
    if (
      not {"settings", "checkpoint"} <= set(sweep)
      or not (directory / "selection.json").exists()
    ):
      continue
    settings = dict(sweep["settings"])
    if settings.get("init") == "random":
      continue  # Says nothing of the checkpoint.
    settings.pop("checkpoint", None)
    selection = files.read_json(directory / "selection.json")
    found.append(
      FineTuning(
        name,
        selection["task"],
        pathlib.Path(sweep["checkpoint"]),
        json.dumps(settings, sort_keys=True),
        _scores(directory, selection),
      )
    )
  return found


def _scores(
  directory: pathlib.Path, selection: Mapping[str, Any]
) -> dict[str, float]:
  scores = {}
  for row, place in _ROWS.get(selection["task"], {}).items():
    mean = selection["scores"].get(place, {}).get("mean")
    if mean is not None:
      scores[row] = mean
  path = directory / selection["best"] / "test_result.json"
  if selection["task"] == "MNLI" and path.exists():
    for split in files.read_json(path).get("scores", {}).values():
      if split and split.get("matthews_corrcoef") is not None:
        scores["AX"] = split["matthews_corrcoef"]
  return scores


def attach(
  found: Sequence[found_runs.Run], finetunings: Sequence[FineTuning]
) -> tuple[list[found_runs.Run], list[str]]:
  """Adds the scores to the runs that they belong to.

  Args:
    found: The runs.
    finetunings: What was fine-tuned.

  Returns:
    The runs, and a line for every fine-tuning that is left out.
  """
  by_directory = {run.directory.resolve(): run for run in found}
  scores: dict[pathlib.Path, dict[str, float]] = collections.defaultdict(dict)
  notes = []
  for each in finetunings:
    parents = each.checkpoint.resolve().parents
    run = next((by_directory[p] for p in parents if p in by_directory), None)
    usual = statistics.mode(
      other.protocol for other in finetunings if other.task == each.task
    )
    if run is None:
      notes.append(f"{each.name}: its checkpoint is of no run here.")
    elif _step(each.checkpoint) != run.config.train_steps:
      notes.append(
        f"{each.name}: fine-tunes {each.checkpoint.name}, which is "
        f"not the end of {run.name}."
      )
    elif each.protocol != usual:
      notes.append(f"{each.name}: other settings than most of {each.task}.")
    elif each.scores.keys() & scores[run.directory].keys():
      notes.append(f"{each.name}: a second one of {each.task} for {run.name}.")
    else:
      scores[run.directory] |= each.scores
  return [_with_scores(run, scores[run.directory]) for run in found], notes


def _with_scores(
  run: found_runs.Run, scores: dict[str, float]
) -> found_runs.Run:
  if run.status != found_runs.FINISHED:
    return run
  for name, rows, average in (
    ("SQuAD average", averages.SQUAD_ROWS, averages.squad_average),
    ("GLUE average", averages.GLUE_ROWS, averages.glue_average),
  ):
    if set(rows) <= set(scores):
      scores[name] = average(scores)
  return dataclasses.replace(run, scores={**run.scores, **scores})


def _step(checkpoint: pathlib.Path) -> int | None:
  match = re.fullmatch(r"ckpt-(\d+)", checkpoint.name)
  return int(match[1]) if match else None
