"""docs/results/map.json: what the map and the pages promise of its runs."""

import json
import pathlib
import re

import numpy as np
import pytest

from experiments import build_map
from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import statistics
from swe_tf.studies import study_file

_NUMBER = r"-?\d+\.\d{3}"
_INTERVAL = re.compile(rf"{_NUMBER} \({_NUMBER} to {_NUMBER}\)")
# Pages whose intervals are the map's.
_PAGES = ("README.md", "docs/methods.md", "docs/cards/*.md", "docs/faq.md")


@pytest.fixture(scope="module", name="rows")
def _rows():
  return json.loads((build_map.RESULTS / "map.json").read_text())


@pytest.fixture(scope="module", name="regimes")
def _regimes(rows):
  """The runs, from map.json alone."""
  regimes: dict = {}
  for row in rows:
    regimes.setdefault(row["regime"], []).append(
      build_map.from_table(
        {
          **{name: row[name] for name in ("arm", "learning_rate", "seed")},
          **{name: row[name] for name in ("final_loss", "steps", "seconds")},
          "phases": [(row["steps"], row["flops"] / row["steps"])],
        }
      )
    )
  return regimes


def test_every_run_that_was_written_down_is_a_row(rows):
  rebuilt = [
    row
    for name, runs in build_map.read_regimes().items()
    for row in build_map.rows_of(name, runs)
  ]
  assert rows == json.loads(json.dumps(rebuilt))
  for run in build_map.read_regimes()["long"]:
    table = build_map.as_table(run)
    assert build_map.as_table(build_map.from_table(table)) == table
  keys = ("regime", "arm", "learning_rate", "seed")
  assert len({tuple(row[key] for key in keys) for row in rows}) == len(rows)


def test_every_table_and_word_of_the_page_follows_from_map_json(regimes):
  page = build_map.PAGE.read_text(encoding="utf-8")
  for table in build_map.tables_of(regimes):
    assert table in page
  assert build_map.top_table(regimes) in page
  assert build_map.stopped() in page


def test_every_interval_on_other_pages_is_one_of_the_map(regimes):
  known = set(_INTERVAL.findall("\n".join(build_map.tables_of(regimes))))
  for pattern in _PAGES:
    for path in build_map.ROOT.glob(pattern):
      text = " ".join(path.read_text(encoding="utf-8").split())
      for interval in _INTERVAL.findall(text):
        assert interval in known, (path, interval)


def test_words_are_given_on_fresh_seeds_only(regimes):
  for name, runs in regimes.items():
    if build_map.REGIMES[name].stopped:
      continue
    for each in build_map.outcomes_of(name, runs).values():
      if each.difference is None or name in build_map.UNTUNED:
        continue
      fresh = {
        run.seed
        for run in runs
        if (run.arm, run.learning_rate) == (each.arm, each.learning_rate)
        and run.seed != outcome_lib.TUNING_SEED
      }
      assert each.difference.n <= len(fresh)
      if each.difference.word() == statistics.PAYS:
        assert each.difference.high < 0 and each.difference.n >= 2


def test_arms_with_fresh_seeds_have_a_rate_inside_their_grid(regimes):
  for name, runs in regimes.items():
    if build_map.REGIMES[name].stopped or name in build_map.UNTUNED:
      continue
    for arm, best in outcome_lib.at_best_rates(runs).items():
      rates = {run.learning_rate for run in runs if run.arm == arm}
      tuned = outcome_lib.TUNING_SEED in {r.seed for r in runs if r.arm == arm}
      # With one rate so far, its tuning is still under way.
      if tuned and len(best) > 1 and len(rates) > 1:
        rate = next(iter(best.values())).learning_rate
        assert min(rates) < rate < max(rates), (name, arm, rates)


def test_a_regime_has_its_study_and_its_baseline(regimes):
  assert len(regimes) >= 6
  for name, runs in regimes.items():
    path = f"experiments/{build_map.REGIMES[name].study}.yaml"
    assert study_file.read_study(str(build_map.ROOT / path)).runs
    assert "baseline" in {run.arm for run in runs}
    for file in build_map.REGIMES[name].files:
      results = build_map.RESULTS / "map" / f"{file}.json"
      folder = "studies" if file in ("text",) else "map"
      study = pathlib.Path("experiments", folder, f"{file}.yaml")
      if results.exists() and file != "text":
        assert (build_map.ROOT / study).exists(), file


def test_the_cards_have_the_results_of_their_arms(regimes):
  for card, arms in build_map.CARDS.items():
    page = (build_map.ROOT / "docs" / "cards" / f"{card}.md").read_text()
    assert build_map.gain_table(regimes, arms) in page


def test_cosines_follow_from_distances():
  """Against the cosines of the weights themselves."""
  rng = np.random.default_rng(0)
  weights = rng.normal(size=(6, 50)) + rng.normal(size=50)
  weights /= np.linalg.norm(weights, axis=1, keepdims=True)
  apart = weights - np.stack([weights[i % 2 :: 2].mean(0) for i in range(6)])
  curves = {
    f"layers/distance/{i:02d}": [(7, float(np.linalg.norm(row)))]
    for i, row in enumerate(apart)
  }
  pairs = [
    weights[i] @ weights[j]
    for i in range(6)
    for j in range(i)
    if (i - j) % 2 == 0
  ]
  ((step, cosine),) = build_map.cosines(curves, 2)
  assert step == 7 and cosine == pytest.approx(np.mean(pairs))
