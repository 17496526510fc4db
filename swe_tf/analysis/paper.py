"""The paper's Tables 1 to 5, and which of their rows a run is.

A score of the paper depends on its model, data and budget, so it stands only
beside a run with the same ones. A test compares `TABLES` with the paper's
source.
"""

from importlib import resources
from typing import Any

import pandas as pd

from swe_tf.analysis import comparisons
from swe_tf.analysis import runs as runs_lib
from swe_tf.methods import catalog
from swe_tf.modeling import sizes
from swe_tf.scoring import column

# Scores in percent, by the table and the run: `model` is a name of
# `modeling.sizes`, `data` is `wikibooks` or `xlnet`.
with (resources.files(__package__) / "paper_tables.csv").open() as _file:
  TABLES = pd.read_csv(_file)
RUN = ("model", "data", "steps", "method", "unit_size")
METRICS = tuple(TABLES.columns[1 + len(RUN) :])
# Runs that stand in two tables have the same scores in both.
_SCORES = TABLES.drop_duplicates(list(RUN)).set_index(list(RUN))
_COLUMNS = (
  *("setting", "method", "unit", "untie_step", "score"),
  *("measured", "gain", "paper", "minus", "paper_gain"),
)
_VOCAB, _BATCH, _LENGTH = 30522, 512, 512
# The rows of the paper, each after that of its dev set, if any.
_ROWS = dict.fromkeys(
  name for row in column.ROWS for name in (column.dev_name(row), row)
)


def row_of(run: Any) -> tuple[Any, ...] | None:
  """Returns the values of `RUN` if a run repeats one of the paper."""
  models = [
    name for name, size in sizes.SIZES.items() if size == run.model_size
  ]
  data = [each for each in ("wikibooks", "xlnet") if each in run.data.lower()]
  same = (run.vocab_size, run.batch_size, run.seq_length)
  # Of SWE, the paper has numbers only for its own choice of tau.
  is_printed = run.rule == catalog.FIXED and (
    run.method != catalog.SWE or run.is_papers
  )
  if not (models and data and is_printed) or same != (_VOCAB, _BATCH, _LENGTH):
    return None
  unit_size = run.unit_size if run.method == catalog.SWE else 1
  key = (models[0], data[0], run.steps, run.method, unit_size)
  return key if key in _SCORES.index else None


def scores(runs: pd.DataFrame) -> pd.DataFrame:
  """Returns every score of every arm, beside the paper's if it has that run.

  `minus` is measured minus the paper's, `paper_gain` over its own baseline.
  """
  rows: list[dict[str, Any]] = []
  shown = comparisons.shown_runs(runs)
  for _, group in shown.groupby(["setting", "arm"], sort=False):
    first, key = group.iloc[0], row_of(group.iloc[0])
    baseline = comparisons.baseline_of(runs, first.setting)
    is_baseline = first.arm in set(baseline.arm)
    for name in (runs_lib.ACCURACY, *_ROWS):
      measured = comparisons.interval(group, name)
      if measured is None:
        continue
      gain = comparisons.difference(group, baseline, name)
      row = {
        "setting": first.setting,
        "method": first.label,
        "unit": first.unit,
        "untie_step": first.untie_step,
        "score": "MLM" if name == runs_lib.ACCURACY else name,
        "measured": measured,
        "gain": None if is_baseline else gain,
      }
      if key and row["score"] in METRICS:
        paper = _SCORES[row["score"]]
        row |= {"paper": paper[key], "minus": measured.mean - paper[key]}
        if not is_baseline:
          base = (*key[:3], catalog.BASELINE, 1)
          row["paper_gain"] = paper[key] - paper[base]
      rows.append(row)
  return pd.DataFrame(rows, columns=list(_COLUMNS), dtype=object)
