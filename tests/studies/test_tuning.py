"""A study's file, the runs it stands for, and which runs it needs next."""

import math

import pytest
import yaml

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.studies import axes
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
  # A probe waits for the baseline at its rate, which may have failed.
  alone = {Point("tied", 2e-3, 0): 1.9}
  points = tuning_lib.next_points(_tuning(), alone)
  assert {point.arm for point in points} == {"baseline", "swe"}


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
  with pytest.raises(errors.UsageError, match="'shorter' is not one of the"):
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
    ({"learning_rates": ["fast", 1, 2]}, "tuning: ValueError"),
    ({"rate": 1}, "tuning has no 'rate'"),
  ],
)
def test_a_tuning_that_cannot_be_is_refused(changes, message):
  with pytest.raises(errors.UsageError, match=message):
    _tuning(**changes)


_RATES = [0.1234567, 0.1234568]


def _names(table):
  return [run.name for run in study_file.plan_runs(table)]


@pytest.mark.parametrize(
  "table, names",
  [
    (
      {"method": ["baseline", "swe"], "seed": [0, 1]},
      ["baseline-seed0", "baseline-seed1", "swe-seed0", "swe-seed1"],
    ),
    # An axis that does not matter to a method makes no runs.
    (
      dict(method=["baseline", "swe"], units=["1x24", 2], tau=["10%", 0.2]),
      ["baseline", *(f"swe-{u}" for u in ("1x24-tau10", "1x24-tau20"))]
      + ["swe-units2-tau10", "swe-units2-tau20"],
    ),
    # Sharing never is the baseline, and sharing always is ALBERT.
    (
      {"method": ["swe"], "tau": [0, "5%", "100%"]},
      ["baseline", "swe-tau5", "albert"],
    ),
    # A run that comes twice is one.
    (
      [
        {"method": ["swe"], "learning_rate": [1e-3, 3e-3], "seed": [0]},
        {"method": ["swe"], "learning_rate": [3e-3], "seed": [0, 1]},
      ],
      ["swe-lr0.001-seed0", "swe-lr0.003-seed0", "swe-lr0.003-seed1"],
    ),
    ({"method": ["swe"], "tau": [0.25, "25%"]}, ["swe-tau25"]),
    ({"learning_rate": _RATES}, [f"lr{rate}" for rate in _RATES]),
    ({"seed": [20240101, 20240102]}, ["seed20240101", "seed20240102"]),
  ],
)
def test_runs_are_all_combinations(table, names):
  assert _names(table) == names


def test_runs_that_differ_never_have_the_same_directory():
  with pytest.raises(errors.UsageError, match="both be the run a_b; rename"):
    _names({"path": {"a/b": {}, "a b": {}}})
  for name in ("", "x" * 300):  # The directory of the study, or none at all.
    with pytest.raises(errors.UsageError, match="is no name for a directory"):
      _names({"path": {name: {}}})
  study = study_file.Study("swe/x", (), {}, ("loss",), ())
  arms = {"arms": {"a/b": {}, "a b": {}}, "seeds": [0]}
  with pytest.raises(errors.UsageError, match="run a where case does not"):
    study_file.plan_runs({"own": {"A": {}, "a": {}}})
  with pytest.raises(errors.UsageError, match="both be the run a_b-lr"):
    study_file.tuned(study, arms | {"learning_rates": [1, 2, 3]})


@pytest.mark.parametrize(
  "content, says",
  [
    ({"method": ["sew"]}, "'sew' is not one of .*baseline, .*swe"),
    ({"tau": ["150%"]}, "1.5 is not a number between 0 and 1"),
    ({"seed": [*range(1000)], "steps": [*range(1, 1001)]}, "1,000,000 comb"),
    ({"units": ["2*12"]}, "'2\\*12' is neither"),
    ({"seed": 3}, "axes.seed must be a list"),
    ({"depth": [3]}, "axes.depth must be a table .*; only method, "),
    ({"methods": ["swe"]}, "axes.methods must be .*; did you mean method"),
    ("axes: {seed: [0]}", "'experiment' is missing"),
    ("experiment: x\naxis: {seed: [0]}", "unknown key 'axis'"),
    ("experiment: x\nmetrics: loss", "metrics .'loss'. must be a list"),
    ("experiment: x\naxes: {seed: [0]}\nconfig_files: [no.yaml]", "no file"),
  ],
)
def test_a_wrong_file_is_told(content, says, tmp_path):
  if not isinstance(content, str):
    content = yaml.safe_dump({"experiment": "swe/x", "axes": content})
  path = tmp_path / "study.yaml"
  path.write_text(content)
  with pytest.raises(errors.UsageError, match=says):
    study_file.read_study(str(path))


def test_a_method_of_ones_own_is_a_value(monkeypatch):
  known = catalog.methods()
  frozen = catalog.Method(
    name="frozen", mode="frozen", build=print, ignores=frozenset({"tau"})
  )
  monkeypatch.setattr(catalog, "methods", lambda: {**known, "frozen": frozen})
  assert _names({"method": ["frozen"], "tau": ["5%", "10%"]}) == ["frozen"]
  overrides = axes.overrides_of("method", "frozen", registry.bert({}))
  assert overrides == {"task": {"sharing": {"mode": "frozen"}}}


def test_a_wider_model_has_as_many_larger_heads():
  size = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
  encoder = registry.bert(size | {"intermediate_size": 128})
  changed = axes.overrides_of("width", 96, encoder)
  wider = encoder.overrides(hidden_size=96, intermediate_size=192)
  assert changed == {"task": wider}
  with pytest.raises(errors.UsageError, match=r"number of heads \(4\)"):
    axes.overrides_of("width", 98, encoder)
