"""Which runs are averaged, and what comes out, against numbers by hand."""

import math

import pytest

from swe_tf.analysis import comparisons
from swe_tf.analysis import found_runs
from swe_tf.analysis import groups
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run

_STAGED = swe(rule="staged", stages=[{"unit_size": 4, "from_step": 5}])


def test_mean_and_deviation():
  found = groups.summarize([1.0, 2.0, 6.0])
  assert found.mean == 3.0
  assert found.std == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
  assert groups.summarize([5.0]) == groups.Statistic(5.0, None, 1)
  assert groups.summarize([]) is None


def test_only_seeds_are_averaged(tmp_path):
  write_run(tmp_path / "a", config(seed=0), 2.0)
  write_run(tmp_path / "b", config(seed=1), 3.0)
  others = [
    config(rate=2e-3),
    config(steps=50),
    config(width=16),
    config(data="d/other.txt"),
    config(layers=12),
    config(dropout_rate=0.1),
    config(sharing=swe(0.1)),
    config(sharing=swe(0.2)),
    config(sharing=swe(0.1, 2)),
    config(sharing=_STAGED),
  ]
  for i, other in enumerate(others):
    write_run(tmp_path / f"other{i}", other, 9.0)
  compared = comparisons.compare(fake_runs.read(tmp_path))
  sizes = [
    len(group.runs)
    for comparison in compared
    for rates in comparison.rates.values()
    for group in rates
  ]
  assert sorted(sizes) == [1] * len(others) + [2]
  assert len({comparison.title for comparison in compared}) == 6
  # Where the words would be the same, they say what differs.
  assert sum("dropout_rate=0.1" in each.title for each in compared) == 1
  assert sum("dropout_rate=unset" in each.title for each in compared) == 1


def test_what_is_only_bookkeeping_does_not_part_runs(tmp_path):
  one, two = config(seed=0), config(seed=1)
  two["trainer"] |= {"checkpoint_interval": 7, "summary_interval": 7}
  # Two ways to write one thing.
  one["task"]["sharing"] = swe(0.1)
  two["task"]["sharing"] = swe(0.9, untie_step=10, rule="fixed", rho=0.3)
  write_run(tmp_path / "a", one, 2.0)
  write_run(tmp_path / "b", two, 3.0)
  (comparison,) = comparisons.compare(fake_runs.read(tmp_path))
  (group,) = comparison.groups.values()
  assert group.statistic(found_runs.LOSS).mean == pytest.approx(2.5)


def test_differences_are_taken_seed_by_seed(tmp_path):
  for seed, loss, accuracy in ((0, 4.0, 0.1), (1, 2.0, 0.3), (2, 3.0, 0.9)):
    write_run(tmp_path / f"b{seed}", config(seed=seed), loss, accuracy)
  for seed, loss, accuracy in ((0, 3.0, 0.2), (1, 1.5, 0.5), (5, 0.0, 0.9)):
    write_run(
      tmp_path / f"s{seed}", config(seed=seed, sharing=swe()), loss, accuracy
    )
  (comparison,) = comparisons.compare(fake_runs.read(tmp_path))
  group = comparison.groups["swe 1x24, untied after 10"]
  found = group.difference(comparison.baseline, found_runs.LOSS)
  assert (found.mean, found.n) == (-0.75, 2)
  assert found.std == pytest.approx(math.sqrt(2 * 0.25**2))
  found = group.difference(comparison.baseline, found_runs.ACCURACY)
  assert found.mean == pytest.approx(15.0)
  assert (
    comparison.baseline.difference(comparison.baseline, found_runs.LOSS) is None
  )


def test_runs_that_do_not_count(tmp_path):
  write_run(tmp_path / "good", config(), 2.0)
  write_run(tmp_path / "again", config(), 2.0)
  write_run(tmp_path / "short", config(seed=1), 1.0, end=99)
  write_run(tmp_path / "nan", config(seed=2), float("nan"))
  write_run(tmp_path / "blown", config(seed=3), float("inf"), end=20)
  write_run(tmp_path / "blind", config(seed=4), 2.0)
  for path in (tmp_path / "blind" / "validation").iterdir():
    path.unlink()
  found = fake_runs.read(tmp_path)
  assert {run.name.split("/")[-1]: run.status for run in found} == {
    "again": "finished",
    "good": "repeated seed",
    "short": "unfinished",
    "nan": "diverged",
    "blown": "diverged",
    "blind": "not evaluated",
  }
  (comparison,) = comparisons.compare(found)
  group = comparison.baseline
  assert [run.name.split("/")[-1] for run in group.runs] == ["again"]
  assert len(group.left_out) == 5
  assert group.statistic(found_runs.LOSS) == groups.Statistic(2.0, None, 1)


def test_a_directory_that_is_named_twice_is_read_once(tmp_path):
  write_run(tmp_path / "study" / "run", config(), 2.0)
  (run,) = fake_runs.read(tmp_path, tmp_path / "study")
  assert run.status == "finished"


def test_the_best_rate_is_of_those_with_the_most_seeds(tmp_path):
  for rate, losses in ((1e-3, [2.0, 2.4]), (2e-3, [2.1, 2.2]), (4e-3, [1.0])):
    for seed, loss in enumerate(losses):
      write_run(tmp_path / f"{rate}_{seed}", config(rate=rate, seed=seed), loss)
  (comparison,) = comparisons.compare(fake_runs.read(tmp_path))
  assert comparison.baseline.config.learning_rate == 2e-3
  assert [
    group.config.learning_rate for group in comparison.rates["baseline"]
  ] == [1e-3, 2e-3, 4e-3]


def test_an_adaptive_run_has_the_untie_step_that_was_measured(tmp_path):
  adaptive = config(sharing=swe(rule="adaptive"))
  write_run(tmp_path / "a", adaptive, 2.0, tau=40.0)
  write_run(tmp_path / "b", config(sharing=swe()), 2.0, tau=10.0)
  assert [run.untie_step for run in fake_runs.read(tmp_path)] == [40.0, 10]
