"""Which runs a comparison needs next, for losses that are made up."""

import math

import pytest

from swe_tf import errors
from swe_tf.studies import study_file
from swe_tf.studies import tuning as tuning_lib

Point = tuning_lib.Point


def _tuning(**changes):
  table = {
    "arms": {"baseline": {}, "swe": {}, "tied": {}},
    "learning_rates": [1e-3, 2e-3, 4e-3],
    "seeds": [0, 1, 2],
    "drop_above": 0.1,
    "probes": ["tied"],
  }
  return tuning_lib.from_table(table | changes)


def _run_all(tuning, loss):
  """Does whatever is asked for until nothing is; returns all losses."""
  losses: dict = {}
  while points := tuning_lib.next_points(tuning, losses):
    assert not set(points) & losses.keys(), "a run was asked for twice"
    losses |= {point: loss(point) for point in points}
  return losses


def _parabola(best, floor):
  return lambda rate: floor + 0.05 * (math.log2(rate / best)) ** 2


def test_every_arm_is_tuned_alike_and_its_best_rate_is_seeded():
  curves = {
    "baseline": _parabola(2e-3, 1.9),
    "swe": _parabola(1.6e-2, 1.8),  # Two rates above the grid.
    "tied": _parabola(2e-3, 1.95),
  }
  losses = _run_all(
    _tuning(), lambda p: curves[p.arm](p.learning_rate) + 0.001 * p.seed
  )
  rates = {
    arm: sorted(tuning_lib.rates_of(_tuning(), losses, arm)) for arm in curves
  }
  assert rates["baseline"] == rates["tied"] == [1e-3, 2e-3, 4e-3]
  assert rates["swe"] == [1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2]
  for arm, best in (("baseline", 2e-3), ("swe", 1.6e-2), ("tied", 2e-3)):
    assert tuning_lib.best_rate(_tuning(), losses, arm) == best
    assert not tuning_lib.is_at_edge(_tuning(), losses, arm)
    seeds = {p.seed for p in losses if (p.arm, p.learning_rate) == (arm, best)}
    assert seeds == {0, 1, 2}


def test_what_is_hopeless_is_dropped_by_the_rule():
  curves = {"baseline": 1.9, "swe": 2.05, "tied": 2.5}
  losses = _run_all(
    _tuning(), lambda p: curves[p.arm] + abs(p.learning_rate - 2e-3)
  )
  assert tuning_lib.dropped(_tuning(), losses).keys() == {"swe", "tied"}
  # The probe had one rate; the other arm its three, and no other seed.
  assert sum(p.arm == "tied" for p in losses) == 1
  assert sum(p.arm == "swe" for p in losses) == 3
  assert sum(p.arm == "baseline" for p in losses) == 5


def test_an_arm_with_a_control_is_dropped_by_it_and_the_control_stays():
  arms = {"baseline": {}, "short": {}, "cheap": {}, "dear": {}}
  floors = {"baseline": 1.0, "short": 2.0, "cheap": 1.9, "dear": 1.9}
  tuning = _tuning(arms=arms, probes=["cheap"], controls={"cheap": "short"})
  losses = _run_all(
    tuning, lambda p: _parabola(2e-3, floors[p.arm])(p.learning_rate)
  )
  assert list(tuning_lib.dropped(tuning, losses)) == ["dear"]
  seeds = {arm: sum(p.arm == arm for p in losses) for arm in arms}
  assert seeds == {"baseline": 5, "short": 5, "cheap": 5, "dear": 3}
  with pytest.raises(
    errors.UsageError, match="'shorter' is not one of the arms"
  ):
    _tuning(arms=arms, probes=[], controls={"cheap": "shorter"})


def test_rates_that_diverge_are_not_the_best_and_widening_ends():
  def loss(point):
    return math.inf if point.learning_rate > 1e-3 else 2.0 + point.learning_rate

  tuning = _tuning(drop_above=math.inf, most_rates=5, probes=[])
  losses = _run_all(tuning, loss)
  rates = tuning_lib.rates_of(tuning, losses, "swe")
  assert list(rates) == [2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3]
  assert tuning_lib.best_rate(tuning, losses, "swe") == 2.5e-4
  assert tuning_lib.is_at_edge(tuning, losses, "swe")
  everything = _run_all(_tuning(), lambda p: math.inf)
  assert all(p.seed == 0 for p in everything)


def test_a_study_goes_on_by_its_results_and_is_resumed_by_asking_again(
  tmp_path,
):
  path = tmp_path / "study.yaml"
  path.write_text(
    "experiment: swe/bert_pretraining\n"
    "tuning:\n"
    "  arms: {baseline: {}, swe: {task: {seed: 3}}}\n"
    "  learning_rates: [1.0e-3, 2.0e-3, 4.0e-3]\n"
    "  seeds: [0, 1]\n"
  )
  study = study_file.read_study(str(path))
  names = [run.name for run in study.runs]
  assert names[0] == "baseline-lr0.002-seed0" and len(names) == 6
  assert study.runs[-1].own == ({"task": {"seed": 3}},)
  losses = {name: 2.0 if "0.002" in name else 3.0 for name in names}
  more = study.with_next_runs(losses)
  new = [run.name for run in more.runs[6:]]
  assert new == ["baseline-lr0.002-seed1", "swe-lr0.002-seed1"]
  assert more.with_next_runs(losses | dict.fromkeys(new, 2.0)) is None
  assert [r.name for r in more.without_runs(names).runs] == new
  for rate, name in ((2e-3, "swe-lr0.002-seed0"), (7e-3, "swe-lr0.007-seed0")):
    run = study.run_of(Point("swe", rate, 0))
    assert run.name == name and run.own == ({"task": {"seed": 3}},)


@pytest.mark.parametrize(
  "changes, message",
  [
    ({"arms": []}, "a table with arms"),
    ({"baseline": "nobody"}, "'nobody' is not one of the arms"),
    ({"learning_rates": [1e-3, 2e-3]}, "at least 3, ascending"),
    ({"learning_rates": [4e-3, 2e-3, 1e-3]}, "at least 3, ascending"),
    ({"learning_rates": ["fast", 1, 2]}, "tuning: ValueError"),
    ({"seeds": []}, r"seeds \(\[\]\) must not be empty"),
    ({"rate": 1}, "tuning has no 'rate'"),
  ],
)
def test_a_tuning_that_cannot_be_is_refused(changes, message):
  with pytest.raises(errors.UsageError, match=message):
    _tuning(**changes)
