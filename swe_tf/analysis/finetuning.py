"""The scores of `swe finetune` as frames, and as columns of pre-training runs.

A score belongs to the run whose last checkpoint was fine-tuned. The paper has
GLUE's test sets, which only the benchmark's site can score, so a score on a dev
set has a name of its own and nothing of the paper beside it.
"""

from collections.abc import Sequence
import json
import re
from typing import Any

import pandas as pd

from swe_tf import files
from swe_tf.analysis import runs as runs_lib
from swe_tf.scoring import column as column_lib


def read_tasks(roots: Sequence[files.PathLike]) -> pd.DataFrame:
  """Reads the fine-tunings of single tasks that selected a run.

  `protocol` has the settings that scores must have in common to be compared.
  """
  found = []
  for name, directory in runs_lib.directories_with(roots, "selection.json"):
    study = files.read_object(
      directory / "study.json", settings=dict, checkpoint=str
    )
    selection = files.read_object(directory / "selection.json", task=str)
    settings = dict(study["settings"])
    settings.pop("checkpoint", None)
    if settings.get("init") != "random":  # Says nothing about the checkpoint.
      protocol = json.dumps(settings, sort_keys=True)
      path = files.as_path(study["checkpoint"])
      scores = column_lib.read_dev(directory)
      found.append((name, selection["task"], path, protocol, scores))
  names = ["name", "task", "checkpoint", "protocol", "scores"]
  return pd.DataFrame(found, columns=names, dtype=object)


def read_columns(roots: Sequence[files.PathLike]) -> pd.DataFrame:
  """Reads the finished columns of `swe finetune --tasks`: a row per column."""
  found = []
  for name, directory in runs_lib.directories_with(roots, column_lib.FILE_NAME):
    path = directory / column_lib.FILE_NAME
    content = files.read_object(path, checkpoint=str, init=str, scores=dict)
    path = files.as_path(content["checkpoint"])
    found.append((name, path, content["init"], content["scores"]))
  names = ["name", "checkpoint", "init", "scores"]
  return pd.DataFrame(found, columns=names, dtype=object)


def attach(
  runs: pd.DataFrame, tasks: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
  """Adds a column per score to the runs; says what is left out, and why."""
  if runs.empty:
    return runs, []
  by_path = {run.path.resolve(): run for run in runs.itertuples()}

  def run_of(checkpoint: files.Path) -> Any:
    parents = checkpoint.resolve().parents
    return next((by_path[each] for each in parents if each in by_path), None)

  dev: dict[str, dict[str, float]] = {name: {} for name in runs.run}
  usual = tasks.groupby("task").protocol.agg(lambda each: each.mode().iloc[0])
  notes = []
  for each in tasks.itertuples():
    run = run_of(each.checkpoint)
    if run is None:
      why = "its checkpoint is not from any of these runs."
    elif not re.fullmatch(rf"ckpt-0*{run.steps}", each.checkpoint.name):
      why = f"fine-tunes {each.checkpoint.name}, not the end of {run.run}."
    elif each.protocol != usual[each.task]:
      why = f"its settings differ from most others of {each.task}."
    elif each.scores.keys() & dev[run.run].keys():
      why = f"a second one of {each.task} for {run.run}."
    else:
      dev[run.run] |= each.scores
      continue
    notes.append(f"Left out: {each.name}: {why}")
  rows = {}
  for run in runs[runs.status == runs_lib.FINISHED].itertuples():
    scores = {
      column_lib.dev_name(row): value
      for row, value in column_lib.with_averages(dev[run.run]).items()
    }
    same = {row: value for row, value in scores.items() if row in dev[run.run]}
    rows[run.Index] = scores | column_lib.with_averages(same)
  added = pd.DataFrame.from_dict(rows, orient="index", dtype=object)
  return runs.join(added), notes
