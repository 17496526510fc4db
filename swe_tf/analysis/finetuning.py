"""Adds the fine-tuning scores of `swe finetune` to pre-training runs.

A score belongs to the run whose last checkpoint was fine-tuned. The paper has
GLUE's test sets, so a score on a dev set has a name of its own, and the name of
the paper's row is reserved for scores from the benchmark's site. Imports no
TensorFlow.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import difflib
import json
import re
import statistics

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import columns as columns_lib
from swe_tf.analysis import found_runs
from swe_tf.scoring import column as column_lib


@dataclasses.dataclass(frozen=True)
class FineTuning:
  """A directory of `swe finetune`.

  Attributes:
    name: Its name for readers; see `found_runs.directories_with`.
    task: The task.
    checkpoint: The checkpoint that was fine-tuned.
    protocol: The settings that scores must have in common to be compared.
    scores: Dev set scores in percent, by row of the paper's tables.
  """

  name: str
  task: str
  checkpoint: files.Path
  protocol: str
  scores: Mapping[str, float]


def read_finetunings(roots: Sequence[files.PathLike]) -> list[FineTuning]:
  """Reads all directories of `swe finetune` that selected a run."""
  found = []
  for name, directory in found_runs.directories_with(roots, "study.json"):
    sweep = files.read_json(directory / "study.json")
    if (
      not {"settings", "checkpoint"} <= set(sweep)
      or not (directory / "selection.json").exists()
    ):
      continue
    settings = dict(sweep["settings"])
    if settings.get("init") == "random":
      continue  # Says nothing about the checkpoint.
    settings.pop("checkpoint", None)
    selection = files.read_json(directory / "selection.json")
    found.append(
      FineTuning(
        name,
        selection["task"],
        files.as_path(sweep["checkpoint"]),
        json.dumps(settings, sort_keys=True),
        column_lib.read_dev(directory),
      )
    )
  return found


def attach(
  found: Sequence[found_runs.Run],
  finetunings: Sequence[FineTuning],
  site: Mapping[str, Mapping[str, float]],
  columns: Sequence[columns_lib.Column],
) -> tuple[list[found_runs.Run], list[str]]:
  """Adds the scores to the runs that they belong to.

  Args:
    found: The runs.
    finetunings: The fine-tunings of single tasks.
    site: Test set scores by the name of a run or of a column.
    columns: The fine-tunings of `--tasks`.

  Returns:
    The runs, and a line for every fine-tuning that is left out.

  Raises:
    UsageError: If a name in `site` is neither a run nor a column.
  """
  known = [*(run.name for run in found), *(each.name for each in columns)]
  for name in site:
    if name not in known:
      near = difflib.get_close_matches(name, known, n=1)
      hint = f"did you mean {near[0]}" if near else f"there are {known}"
      raise errors.UsageError(
        f"--site_scores: {name} is neither a run nor a column of --runs; "
        f"{hint}?"
      )
  by_directory = {run.directory.resolve(): run for run in found}

  def run_of(checkpoint: files.Path) -> found_runs.Run | None:
    parents = checkpoint.resolve().parents
    return next((by_directory[p] for p in parents if p in by_directory), None)

  dev: dict[files.Path, dict[str, float]] = collections.defaultdict(dict)
  notes = []
  for each in finetunings:
    run = run_of(each.checkpoint)
    usual = statistics.mode(
      other.protocol for other in finetunings if other.task == each.task
    )
    if run is None:
      notes.append(
        f"{each.name}: its checkpoint is not from any of these runs."
      )
    elif _step(each.checkpoint) != run.config.train_steps:
      notes.append(
        f"{each.name}: fine-tunes {each.checkpoint.name}, which is "
        f"not the end of {run.name}."
      )
    elif each.protocol != usual:
      notes.append(
        f"{each.name}: its settings differ from most others of {each.task}."
      )
    elif each.scores.keys() & dev[run.directory].keys():
      notes.append(f"{each.name}: a second one of {each.task} for {run.name}.")
    else:
      dev[run.directory] |= each.scores
  test = {
    run.directory: dict(site[run.name]) for run in found if run.name in site
  }
  for column in columns:
    run = run_of(column.checkpoint)
    if run is not None and column.name in site:
      test.setdefault(run.directory, {}).update(site[column.name])
  return [
    _with_scores(run, dev[run.directory], test.get(run.directory, {}))
    for run in found
  ], notes


def _with_scores(
  run: found_runs.Run, dev: Mapping[str, float], test: Mapping[str, float]
) -> found_runs.Run:
  if run.status != found_runs.FINISHED:
    return run
  scores = {
    column_lib.dev_name(row): value
    for row, value in column_lib.with_averages(dev).items()
  }
  # AX and SQuAD have only one set, which is comparable with the paper's.
  rest = {row: value for row, value in scores.items() if row in dev}
  scores |= column_lib.with_averages(rest | dict(test))
  return dataclasses.replace(run, scores={**run.scores, **scores})


def _step(checkpoint: files.Path) -> int | None:
  match = re.fullmatch(r"ckpt-(\d+)", checkpoint.name)
  return int(match[1]) if match else None
