"""A study's file and the runs that it stands for."""

import pytest
import yaml

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.studies import axes
from swe_tf.studies import study_file


def _names(table):
  return [run.name for run in study_file.plan_runs(table)]


def test_runs_are_all_combinations():
  assert _names({"method": ["baseline", "swe"], "seed": [0, 1]}) == [
    "baseline-seed0",
    "baseline-seed1",
    "swe-seed0",
    "swe-seed1",
  ]


def test_an_axis_that_does_not_matter_to_a_method_makes_no_runs():
  runs = study_file.plan_runs(
    {
      "method": ["baseline", "swe", "net2net"],
      "units": ["1x24", "2x12"],
      "tau": ["10%", 0.2],
    }
  )
  assert [run.name for run in runs] == [
    "baseline",
    "swe-1x24-tau10",
    "swe-1x24-tau20",
    "swe-2x12-tau10",
    "swe-2x12-tau20",
    "net2net",
  ]
  assert runs[0].point == {"method": "baseline"}


def test_sharing_never_is_the_baseline_and_sharing_always_is_albert():
  assert _names({"method": ["swe"], "tau": [0, "5%", "100%"]}) == [
    "baseline",
    "swe-tau5",
    "albert",
  ]


def test_tables_are_joined_and_a_run_that_comes_twice_is_one():
  assert _names(
    [
      {"method": ["swe"], "learning_rate": [1e-3, 3e-3], "seed": [0]},
      {"method": ["swe"], "learning_rate": [3e-3], "seed": [0, 1]},
    ]
  ) == ["swe-lr0.001-seed0", "swe-lr0.003-seed0", "swe-lr0.003-seed1"]


def test_an_axis_of_ones_own():
  staged = {"task": {"sharing": {"rule": "staged"}}}
  (run,) = study_file.plan_runs(
    {"schedule": {"in stages": staged}, "seed": [3]}
  )
  assert run.name == "in_stages-seed3"
  assert run.own == (staged,)


def test_runs_that_differ_have_names_that_differ():
  rates = [0.1234567, 0.1234568]
  assert len(set(_names({"learning_rate": rates}))) == 2
  assert _names({"seed": [20240101, 20240102]}) == [
    "seed20240101",
    "seed20240102",
  ]
  assert _names({"method": ["swe"], "tau": [0.25, "25%"]}) == ["swe-tau25"]
  with pytest.raises(errors.UsageError, match="both be the run a_b; rename"):
    _names({"path": {"a/b": {}, "a b": {}}})
  study = study_file.Study("swe/x", (), {}, ("loss",), ())
  arms = {"arms": {"a/b": {}, "a b": {}}, "seeds": [0]}
  with pytest.raises(errors.UsageError, match="both be the run a_b-lr"):
    study_file.tuned(study, arms | {"learning_rates": [1, 2, 3]})


@pytest.mark.parametrize(
  "table, says",
  [
    ({"method": ["sew"]}, "'sew' is not one of .*baseline, .*swe"),
    ({"tau": ["150%"]}, "1.5 is not a number between 0 and 1"),
    ({"tau": [True]}, "True is not a number"),
    ({"units": ["2*12"]}, "'2\\*12' is neither"),
    ({"seed": []}, "axes.seed must be a list"),
    ({"seed": 3}, "axes.seed must be a list"),
    ({"depth": [3]}, "axes.depth must be a table .* not one of method"),
    ([], "axes"),
  ],
)
def test_a_wrong_axis_is_named(table, says, tmp_path):
  path = tmp_path / "study.yaml"
  path.write_text(yaml.safe_dump({"experiment": "swe/x", "axes": table}))
  with pytest.raises(errors.UsageError, match=says):
    study_file.read_study(str(path))


@pytest.mark.parametrize(
  "content, says",
  [
    ("axes: {seed: [0]}", "'experiment' is missing"),
    ("experiment: x\naxis: {seed: [0]}", "unknown key 'axis'"),
    ("- a list", "must be a table"),
    ("a: [", "not YAML"),
    ("experiment: x\naxes: {seed: [0]}\nconfig_files: [no.yaml]", "no file"),
  ],
)
def test_a_wrong_file_is_told(content, says, tmp_path):
  path = tmp_path / "study.yaml"
  path.write_text(content)
  with pytest.raises(errors.UsageError, match=says):
    study_file.read_study(str(path))
  with pytest.raises(errors.UsageError, match="No such file"):
    study_file.read_study(str(tmp_path / "absent.yaml"))


def test_a_method_of_ones_own_is_a_value(monkeypatch):
  known = catalog.methods()
  task = {"sharing": {"mode": "frozen"}}
  frozen = catalog.Method(
    name="frozen", mode="frozen", build=print, ignores=frozenset({"tau"})
  )
  monkeypatch.setattr(catalog, "methods", lambda: {**known, "frozen": frozen})
  assert _names({"method": ["frozen"], "tau": ["5%", "10%"]}) == ["frozen"]
  encoder = registry.bert({})
  assert axes.overrides_of("method", "frozen", encoder) == {"task": task}
  with pytest.raises(errors.UsageError, match="frozen"):
    _names({"method": ["melted"]})


def test_a_wider_model_has_as_many_larger_heads():
  encoder = registry.bert(
    {
      "num_layers": 2,
      "hidden_size": 64,
      "num_attention_heads": 4,
      "intermediate_size": 128,
    }
  )
  changed = axes.overrides_of("width", 96, encoder)
  assert changed == {
    "task": encoder.overrides(hidden_size=96, intermediate_size=192)
  }
  with pytest.raises(errors.UsageError, match=r"number of heads \(4\)"):
    axes.overrides_of("width", 98, encoder)
