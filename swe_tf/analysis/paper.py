"""The paper's Tables 1 to 5, and which of their rows a run is.

A score of the paper depends on its model, data and budget, so it stands only
beside a run with the same ones. A test compares `TABLES` with the paper's
source.
"""

from collections.abc import Sequence
from importlib import resources
from typing import Any

import pandas as pd

from swe_tf.analysis import comparisons
from swe_tf.analysis import runs as runs_lib
from swe_tf.methods import catalog
from swe_tf.modeling import sizes

# Scores in percent, by the table and the run: `model` is a name of
# `modeling.sizes`, `data` is `wikibooks` or `xlnet`.
with (resources.files(__package__) / "paper_tables.csv").open() as _file:
  TABLES = pd.read_csv(_file)
RUN = ("model", "data", "steps", "method", "unit_size")
METRICS = tuple(TABLES.columns[1 + len(RUN) :])
# Runs that stand in two tables have the same scores in both.
_SCORES = TABLES.drop_duplicates(list(RUN)).set_index(list(RUN))
_BATCH, _LENGTH, _VOCAB = 512, 512, 30522


def row_of(run: Any) -> tuple[Any, ...] | None:
  """Returns the run of the paper that a run repeats; None if there is none.

  Args:
    run: A row of the frame of runs.

  Returns:
    The values of `RUN`. The data counts as the paper's if its path contains the
    name.
  """
  models = [
    name for name, size in sizes.SIZES.items() if size == run.model_size
  ]
  data = [each for each in ("wikibooks", "xlnet") if each in run.data.lower()]
  is_same = (run.vocab_size, run.batch_size, run.seq_length) == (
    _VOCAB,
    _BATCH,
    _LENGTH,
  )
  # Of SWE, the paper has numbers only for its own choice of tau.
  is_printed = run.rule == catalog.FIXED and (
    run.method != catalog.SWE or run.is_papers
  )
  if not (models and data and is_same and is_printed):
    return None
  unit_size = run.unit_size if run.method == catalog.SWE else 1
  key = (models[0], data[0], run.steps, run.method, unit_size)
  return key if key in _SCORES.index else None


def compare(
  runs: pd.DataFrame, baselines: dict[str, pd.DataFrame], names: Sequence[str]
) -> pd.DataFrame:
  """Returns the scores of runs that are rows of the paper, beside its own.

  Args:
    runs: The runs that count.
    baselines: The baseline's runs of each setting.
    names: The columns of the scores, of which the first is the MLM accuracy.
  """
  rows: list[dict[str, Any]] = []
  for _, group in runs.groupby(["setting", "arm"], sort=False):
    first = group.iloc[0]
    key = row_of(first)
    if key is None:
      continue
    base = (*key[:3], catalog.BASELINE, 1)
    for name in names:
      metric = "MLM" if name == runs_lib.ACCURACY else name
      measured = comparisons.interval(group, name)
      if measured is None or metric not in METRICS:
        continue
      theirs = _SCORES.loc[key, metric]
      gain = theirs_gain = None
      if key != base:
        gain = comparisons.difference(group, baselines[first.setting], name)
        theirs_gain = theirs - _SCORES.loc[base, metric]
      rows.append(
        {
          "setting": first.setting,
          "method": first.label,
          "unit": first.unit,
          "score": metric,
          "measured": measured,
          "paper": theirs,
          "minus": measured.mean - theirs,
          "gain": gain,
          "paper_gain": theirs_gain,
        }
      )
  return pd.DataFrame(rows, dtype=object)
