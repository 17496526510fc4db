"""Runs sorted into settings and arms, and what each arm ended with.

Runs are compared within their setting only. An arm is a method in a setting:
runs that differ in nothing but the seed and the peak learning rate. It is shown
with its best rate. Differences from the baseline are taken seed by seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import scalars
from swe_tf.analysis import statistics
from swe_tf.analysis import verdict
from swe_tf.methods import catalog

VALIDATION = "validation/validation_loss"
# The validation curves by run.
Losses = Mapping[str, scalars.Curve]
_FLAGS = ("is_fixed", "is_papers", "is_swe", "is_baseline")
_FIRST = (catalog.BASELINE, catalog.SWE, catalog.ALBERT)


def arrange(found: pd.DataFrame) -> pd.DataFrame:
  """Sorts runs by setting and arm.

  Args:
    found: What `runs.read` returns.

  Returns:
    The same runs, the largest setting first, and the baseline first in each.
    `setting` and `arm` are in words; `is_best` says whether the run has the
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
  finished = runs[runs.status == runs_lib.FINISHED]
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
  kinds: list[Mapping[str, Any]] = []
  names, places = [], []
  for title, own in zip(titles, fields):
    if own not in kinds:
      kinds.append(own)
      names.append(title)
    places.append(kinds.index(own))
  unique = []
  for name, own in zip(names, kinds):
    same = [kind for kind, other in zip(kinds, names) if other == name]
    differing = [
      f"{field}={own.get(field, 'unset')}"
      for field in sorted({field for kind in same for field in kind})
      if any(kind.get(field) != own.get(field) for kind in same)
    ]
    unique.append("; ".join([name, *differing]))
  return [unique[place] for place in places]


def finished_runs(runs: pd.DataFrame) -> pd.DataFrame:
  """Returns the runs that count."""
  return runs[runs.status == runs_lib.FINISHED]


def shown_runs(runs: pd.DataFrame) -> pd.DataFrame:
  """Returns the runs that count, with the rate that their arm is shown with."""
  return finished_runs(runs[runs.is_best])


def baseline_of(runs: pd.DataFrame, setting: str) -> pd.DataFrame:
  """Returns the baseline's runs that count, with its best rate."""
  found = runs[(runs.setting == setting) & (runs.method == catalog.BASELINE)]
  # There are several if gin bound something; the plain one is first.
  return shown_runs(found[found.arm.isin(found.arm[:1])])


def summarize(
  runs: pd.DataFrame,
  curves: pd.DataFrame,
  by: Sequence[str] = ("setting", "arm"),
) -> pd.DataFrame:
  """Returns a row per arm, or per arm and rate: its means over seeds.

  Args:
    runs: Arranged runs, of all rates.
    curves: Their curves.
    by: The columns that keep rows apart.

  Returns:
    A frame with the keys of `tables.Column`s that sections show; means and
    differences are `statistics.Interval`s, None where nothing was measured.
  """
  rows = []
  losses = {
    run: list(zip(curve.step, curve.value))
    for run, curve in curves[curves.curve == VALIDATION].groupby("run")
  }
  chosen = runs if "learning_rate" in by else runs[runs.is_best]
  for _, group in chosen.groupby(list(by), sort=False):
    baseline = baseline_of(runs, group.setting.iloc[0])
    rows.append(_row(group, baseline, losses))
  if not rows:
    return pd.DataFrame()
  # As objects, so that a missing integer makes no floats of the others.
  return pd.DataFrame(rows, dtype=object).astype(dict.fromkeys(_FLAGS, bool))


def _row(
  group: pd.DataFrame, baseline: pd.DataFrame, losses: Losses
) -> dict[str, Any]:
  first, counted = group.iloc[0], finished_runs(group)
  is_baseline = len(baseline) > 0 and first.arm == baseline.arm.iloc[0]
  left_out = group.status[group.status != runs_lib.FINISHED].value_counts()
  row = {
    "setting": first.setting,
    "arm": first.arm,
    "method": first.label,
    "unit": first.unit,
    "untie_step": first.variant.get("untie_step", _mean(counted, "untie_step")),
    "learning_rate": first.learning_rate or None,
    "rates_tried": first.rates,
    "shown": "yes" if first.is_best else None,
    "seeds": len(counted),
    "left_out": ", ".join(f"{n} {why}" for why, n in left_out.items()) or None,
    "is_fixed": first.is_fixed,
    "is_papers": first.is_papers,
    "is_swe": first.method == catalog.SWE,
    "is_baseline": is_baseline,
    "loss_difference": None,
    "mlm_gain": None,
    "seconds": interval(counted, "seconds"),
  }
  for name in (runs_lib.LOSS, runs_lib.ACCURACY):
    row[name] = interval(counted, name)
  if len(counted):
    row |= {key: first[key] for key in ("steps", "tokens", "flops")}
  row["differences"] = []
  if len(baseline):
    if not is_baseline:
      ours = by_seed(counted, runs_lib.LOSS)
      theirs = by_seed(baseline, runs_lib.LOSS)
      row["differences"] = [
        ours[seed] - theirs[seed] for seed in ours if seed in theirs
      ]
      row["loss_difference"] = statistics.paired(ours, theirs)
      row["mlm_gain"] = difference(counted, baseline, runs_lib.ACCURACY)
    row |= _speed(counted, baseline, losses)
  row["verdict"] = verdict.word(
    row["loss_difference"], row.get("flops_ratio"), row.get("equal_loss")
  )
  return row


def by_seed(runs: pd.DataFrame, name: str) -> dict[Any, float]:
  """Returns a score of the runs that have it, by seed."""
  if name not in runs:
    return {}
  found = runs[["seed", name]].dropna()
  return dict(zip(found.seed, found[name].astype(float)))


def interval(runs: pd.DataFrame, name: str) -> statistics.Interval | None:
  """Returns the mean of a score over the runs that have it."""
  return statistics.mean(by_seed(runs, name).values())


def difference(
  runs: pd.DataFrame, baseline: pd.DataFrame, name: str
) -> statistics.Interval | None:
  """Returns the mean difference of a score from the baseline's."""
  return statistics.paired(by_seed(runs, name), by_seed(baseline, name))


def _mean(runs: pd.DataFrame, name: str) -> float | None:
  found = interval(runs, name)
  return found.mean if found else None


def _speed(
  counted: pd.DataFrame, baseline: pd.DataFrame, losses: Losses
) -> dict[str, Any]:
  """Returns how soon an arm is as far as the baseline, and the reverse.

  `steps_ratio` is the fraction of its steps after which the arm reaches the
  baseline's final loss, `reverse_ratio` the fraction after which the baseline
  reaches the arm's. `flops_ratio` is the arm's FLOPs divided by the baseline's,
  `equal_loss` by those that the baseline needs for the arm's final loss. All
  are read in the middle of a schedule: a run that was scheduled to end there
  would do better. None unless every seed gets there: the mean of those that do
  would flatter.
  """
  ours, theirs = (
    {run.seed: run for run in each.itertuples()} for each in (counted, baseline)
  )
  pairs = [(run, theirs[seed]) for seed, run in ours.items() if seed in theirs]

  def reached(run: Any, other: Any) -> float | None:
    """Returns the fraction of `run`'s steps that reach `other`'s loss."""
    step = scalars.steps_to_reach(losses[run.run], other.validation_loss)
    return None if step is None else step / run.steps

  forward = [reached(run, other) for run, other in pairs]
  back = [reached(other, run) for run, other in pairs]
  found = {
    "steps_ratio": statistics.mean(forward),
    "reverse_ratio": statistics.mean(back),
    "reached": len(forward) - forward.count(None) if pairs else None,
    "pairs": len(pairs) or None,
  }
  if pairs and pairs[0][0].phases and pairs[0][1].phases:
    run, other = pairs[0]
    found["flops_ratio"] = run.flops / other.flops
    found["equal_loss"] = statistics.mean(
      None if part is None else run.flops / flops_until(other, part)
      for part in back
    )
  return found


def flops_until(run: Any, part: float | np.ndarray) -> Any:
  """Returns the FLOPs that a run has spent after a part of its steps."""
  steps, rates = zip(*run.phases)
  ends = np.cumsum([0, *steps])
  spent = np.cumsum([0.0, *(s * float(r) for s, r in zip(steps, rates))])
  return np.interp(np.asarray(part) * run.steps, ends, spent)
