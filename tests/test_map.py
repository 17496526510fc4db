"""docs/results/map.json: what the map promises of its runs."""

import collections
import json
import math

import pytest

from experiments import build_map
from experiments import map_measures
from swe_tf.studies import outcome as outcome_lib
from swe_tf.studies import study_file

_FIELDS = [
  "regime",
  "arm",
  "learning_rate",
  "seed",
  "final_loss",
  "steps",
  "flops",
  "seconds",
  "steps_ratio",
]
_STUDIES = build_map.ROOT / "experiments"


@pytest.fixture(scope="module", name="rows")
def _rows():
  return json.loads((build_map.RESULTS / "map.json").read_text())


def test_every_run_that_was_written_down_is_a_row(rows):
  regimes = build_map.read_regimes()
  rebuilt = [
    row
    for name, runs in regimes.items()
    for row in build_map.rows_of(name, runs)
  ]
  assert rows == json.loads(json.dumps(rebuilt))
  for row in rows:
    assert set(_FIELDS) <= row.keys()
  assert len({tuple(row[f] for f in _FIELDS[:4]) for row in rows}) == len(rows)


def test_arms_that_were_not_dropped_have_three_seeds_at_a_rate_inside(rows):
  arms = collections.defaultdict(list)
  for row in rows:
    if not row["dropped"] and row["regime"] not in build_map.STOPPED:
      arms[row["regime"], row["arm"]].append(row)
  for (regime, arm), runs in arms.items():
    best = {row["learning_rate"] for row in runs if row["best_rate"]}
    (rate,) = best
    seeds = {row["seed"] for row in runs if row["learning_rate"] == rate}
    assert len(seeds) >= 3, (regime, arm)
    rates = sorted({row["learning_rate"] for row in runs})
    assert len(rates) >= 3, (regime, arm)
    if regime not in build_map.UNTUNED:
      assert rates[0] < rate < rates[-1], (regime, arm, rates)


def test_a_regime_has_its_study_and_its_baseline(rows):
  judged = {row["regime"] for row in rows} - build_map.STOPPED.keys()
  assert len(judged) >= 6
  for regime in judged:
    name = "studies/few_loops" if regime == "text" else f"map/{regime}"
    study = study_file.read_study(str(_STUDIES / f"{name}.yaml"))
    assert study.runs
    kept = {
      row["arm"]
      for row in rows
      if row["regime"] == regime and not row["dropped"]
    }
    assert "baseline" in kept


def _run(arm, seed, losses, flops=1.0):
  return outcome_lib.Record(
    arm=arm,
    learning_rate=1.0,
    seed=seed,
    final_loss=losses[-1],
    steps=10 * (len(losses) - 1),
    phases=((10 * (len(losses) - 1), flops),),
    seconds=1.0,
    curve=tuple((10 * n, loss) for n, loss in enumerate(losses)),
  )


def test_a_saving_is_read_off_the_mean_curve_and_its_interval_off_the_seeds():
  base = [_run("baseline", seed, [3.0, 2.5, 2.0]) for seed in range(4)]
  same = [_run("cheap", seed, [3.0, 1.0, 0.5], 0.5) for seed in range(4)]
  # Down at 2 in the middle of the first 10 steps, of 20, at half the FLOPs.
  assert map_measures.saving(base + same, "cheap") == (0.125, 0.125, 0.125)
  # The mean of these is [3, 2.5, 1.75]; of two that stay above there is none.
  other = [
    _run("cheap", seed, losses)
    for seed, losses in enumerate([[3.0, 2.0, 1.0], [3.0, 3.0, 2.5]])
  ]
  mean, low, high = map_measures.saving(base + other, "cheap")
  assert mean == pytest.approx((10 + 10 * 0.5 / 0.75) / 20)
  assert low == pytest.approx(0.5) and high == math.inf


def test_flops_for_an_equal_loss():
  # The baseline's loss falls by 1 with every doubling of its 10 steps.
  runs = [
    _run(arm, seed, [9.0] * steps + [loss], flops)
    for arm, steps, loss, flops in (
      ("short", 1, 3.0, 1.0),
      ("baseline", 2, 2.0, 1.0),
      ("cheap", 2, 1.5, 0.6),
    )
    for seed in range(3)
  ]
  # 0.6 of the FLOPs of a baseline that would need 2 ** 0.5 times its own.
  ratio, low, high = map_measures.equal_loss(runs, "cheap")
  assert ratio == pytest.approx(0.6 / 2**0.5) == low == high
  assert map_measures.equal_loss(runs[:-1], "cheap") is None


def test_the_page_has_the_tables_of_the_map():
  page = build_map.PAGE.read_text(encoding="utf-8")
  for table in build_map.tables_of(build_map.read_regimes()):
    assert table in page
  assert build_map.stopped() in page
  assert build_map.confirmation() in page
