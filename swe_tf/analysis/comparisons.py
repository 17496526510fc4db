"""Runs sorted into settings and arms, and what each arm ended with.

Runs are compared within their setting only. An arm is a method in a setting:
runs that differ in nothing but the seed and the peak learning rate. It is shown
with its best rate. Differences from the baseline are taken seed by seed; the
words of a verdict are those of `statistics`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import scalars
from swe_tf.analysis import statistics
from swe_tf.methods import catalog

VALIDATION = "validation/validation_loss"
_FLAGS = ("is_fixed", "is_papers", "is_swe", "is_baseline")
_FIRST = (catalog.BASELINE, catalog.SWE, catalog.ALBERT)


def arrange(found: pd.DataFrame) -> pd.DataFrame:
  """Sorts runs by setting and arm, the baseline first in each setting.

  `setting` and `arm` are then in words; `is_best` says whether the run has the
  peak rate that its arm is shown with, `rates` how many rates the arm has. A
  second run with the same config and seed has the status `REPEATED`.
  """
  if found.empty:
    return found
  titles = _titles(found.setting_title, found.setting)
  runs = found.assign(setting=titles, arm="", is_best=False, rates=1)
  for _, group in runs.groupby("setting"):
    runs.loc[group.index, "arm"] = _titles(group.title, group.variant)
  key = ["setting", "arm", "learning_rate", "seed"]
  finished = finished_runs(runs)
  repeated = finished.index[finished.duplicated(key)]
  runs.loc[repeated, "status"] = runs_lib.REPEATED
  runs["learning_rate"] = runs.learning_rate.fillna(0.0)
  for _, group in runs.groupby(["setting", "arm"]):
    # The mean of the one seed that happened to survive says little: first come
    # the rates with the most seeds.
    ranks = {}
    for rate, each in group.groupby("learning_rate"):
      losses = finished_runs(each)[runs_lib.LOSS]
      ranks[rate] = -len(losses), losses.mean() if len(losses) else 0.0
    best = min(ranks, key=lambda rate: ranks[rate])
    runs.loc[group.index, "is_best"] = group.learning_rate == best
    runs.loc[group.index, "rates"] = len(ranks)
  sizes = runs.groupby("setting").arm.nunique()
  places = {title: place for place, title in enumerate(runs.setting.unique())}

  def rank(row: Any) -> tuple[Any, ...]:
    return (
      -sizes[row.setting],
      places[row.setting],
      _FIRST.index(row.method) if row.method in _FIRST else len(_FIRST),
      row.label,
      row.unit_size or 0,
      row.variant.get("untie_step", 0),
      len(row.variant),  # The baseline is the one that gin did not change.
      row.arm,
      row.learning_rate,
    )

  order = sorted(runs.itertuples(), key=rank)
  return runs.loc[[row.Index for row in order]].reset_index(drop=True)


def _titles(
  titles: Iterable[str], fields: Iterable[Mapping[str, Any]]
) -> list[str]:
  """Returns titles that are the same for the same fields, and only for them.

  Where others would be the same, the fields that differ are added.
  """
  rows = list(zip(titles, fields))
  kinds: list[tuple[str, Mapping[str, Any]]] = []
  for title, own in rows:
    if all(own != known for _, known in kinds):
      kinds.append((title, own))
  unique = []
  for name, own in kinds:
    same = [kind for other, kind in kinds if other == name]
    differing = [
      f"{field}={own.get(field, 'unset')}"
      for field in sorted({field for kind in same for field in kind})
      if any(kind.get(field) != own.get(field) for kind in same)
    ]
    unique.append("; ".join([name, *differing]))
  known = [own for _, own in kinds]
  return [unique[known.index(own)] for _, own in rows]


def finished_runs(runs: pd.DataFrame) -> pd.DataFrame:
  return runs[runs.status == runs_lib.FINISHED]


def shown_runs(runs: pd.DataFrame) -> pd.DataFrame:
  """Returns the runs that count, at the rate that their arm is shown with."""
  return finished_runs(runs[runs.is_best])


def baseline_of(runs: pd.DataFrame, setting: str) -> pd.DataFrame:
  """Returns the baseline's runs that count, with its best rate."""
  found = runs[(runs.setting == setting) & (runs.method == catalog.BASELINE)]
  # There are several if gin bound something; the plain one is first.
  return shown_runs(found[found.arm.isin(found.arm[:1])])


def summarize(
  runs: pd.DataFrame, by: Sequence[str] = ("setting", "arm")
) -> pd.DataFrame:
  """Returns a row per arm, or per arm and rate, of arranged runs.

  Means over seeds and differences are `statistics.Interval`s, None where
  nothing was measured.
  """
  chosen = runs if "learning_rate" in by else runs[runs.is_best]
  rows = [
    _row(group, baseline_of(runs, group.setting.iloc[0]))
    for _, group in chosen.groupby(list(by), sort=False)
  ]
  if not rows:
    return pd.DataFrame()
  # As objects: a missing integer makes no floats of the others.
  return pd.DataFrame(rows, dtype=object).astype(dict.fromkeys(_FLAGS, bool))


def steps_until(curve: scalars.Curve, loss: float) -> float | None:
  """Returns the step at which a loss was first so low; None if it never was.

  >>> steps_until([(10, 4.0), (20, 2.0)], 2.5)
  17.5
  """
  for (start, high), (end, low) in zip(curve[:1] + curve, curve):
    if low <= loss:
      part = (high - loss) / (high - low) if high > loss else 1.0
      return start + part * (end - start)
  return None


def _row(group: pd.DataFrame, baseline: pd.DataFrame) -> dict[str, Any]:
  first, counted = group.iloc[0], finished_runs(group)
  is_baseline = len(baseline) > 0 and first.arm == baseline.arm.iloc[0]
  left_out = group.status[group.status != runs_lib.FINISHED].value_counts()
  tau = interval(counted, "untie_step")
  row = {
    "setting": first.setting,
    "arm": first.arm,
    "method": first.label,
    "unit": first.unit,
    "untie_step": first.variant.get("untie_step", tau.mean if tau else None),
    "learning_rate": first.learning_rate or None,
    "rates_tried": first.rates,
    "shown": "yes" if first.is_best else None,
    "seeds": len(counted),
    "left_out": ", ".join(f"{n} {why}" for why, n in left_out.items()) or None,
    "is_fixed": first.is_fixed,
    "is_papers": first.is_papers,
    "is_swe": first.method == catalog.SWE,
    "is_baseline": is_baseline,
    "entropy": first.entropy,
    "differences": [],
    "loss_difference": None,
    "mlm_gain": None,
    "flops_ratio": None,
    "equal_part": None,
    "equal_loss": None,
  }
  for name in ("seconds", "dollars", runs_lib.LOSS, runs_lib.ACCURACY):
    row[name] = interval(counted, name)
  if len(counted):
    row |= {key: first[key] for key in ("steps", "tokens", "flops")}
    # A run's FLOPs follow from its config, so any seed's will do.
    if first.flops and len(baseline) and baseline.flops.iloc[0]:
      row["flops_ratio"] = first.flops / baseline.flops.iloc[0]
  if len(baseline) and not is_baseline:
    ours, theirs = (by_seed(r, runs_lib.LOSS) for r in (counted, baseline))
    row["differences"] = [ours[s] - theirs[s] for s in ours if s in theirs]
    row["loss_difference"] = statistics.paired(ours, theirs)
    row["mlm_gain"] = difference(counted, baseline, runs_lib.ACCURACY)
    # The part of its steps, and so of its FLOPs, after which the baseline was
    # where the arm ended.
    parts = []
    for run in baseline[baseline.seed.isin(list(ours))].itertuples():
      reached = steps_until(run.curve, ours[run.seed])
      parts.append(reached and reached / run.steps)
    row["equal_part"] = statistics.mean(parts)
    if row["equal_part"] and row["flops_ratio"]:
      ratios = [row["flops_ratio"] / part for part in parts]
      row["equal_loss"] = statistics.mean(ratios)
  row["verdict"] = statistics.verdict(
    row["loss_difference"], row["flops_ratio"], row["equal_loss"]
  )
  return row


def by_seed(runs: pd.DataFrame, name: str) -> dict[Any, float]:
  if name not in runs:
    return {}
  found = runs[["seed", name]].dropna()
  return dict(zip(found.seed, found[name].astype(float)))


def interval(runs: pd.DataFrame, name: str) -> statistics.Interval | None:
  return statistics.mean(by_seed(runs, name).values())


def difference(
  runs: pd.DataFrame, baseline: pd.DataFrame, name: str
) -> statistics.Interval | None:
  return statistics.paired(by_seed(runs, name), by_seed(baseline, name))


def flops_until(run: Any, part: float | np.ndarray) -> Any:
  """Returns the FLOPs that a run has spent after a part of its steps."""
  steps, rates = zip(*run.phases)
  ends = np.cumsum([0, *steps])
  spent = np.cumsum([0.0, *(s * float(r) for s, r in zip(steps, rates))])
  return np.interp(np.asarray(part) * run.steps, ends, spent)
