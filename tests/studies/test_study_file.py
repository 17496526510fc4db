"""A study's file and the runs that it stands for."""

import pytest
import yaml

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.studies import axes
from swe_tf.studies import study_file

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
      {
        "method": ["baseline", "swe"],
        "units": ["1x24", 2],
        "tau": ["10%", 0.2],
      },
      ["baseline"]
      + [f"swe-{u}-tau{t}" for u in ("1x24", "units2") for t in (10, 20)],
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


def test_an_axis_of_ones_own():
  staged = {"task": {"sharing": {"rule": "staged"}}}
  (run,) = study_file.plan_runs(
    {"schedule": {"in stages": staged}, "seed": [3]}
  )
  assert run.name == "in_stages-seed3" and run.own == (staged,)


def test_runs_that_differ_never_have_the_same_directory():
  with pytest.raises(errors.UsageError, match="both be the run a_b; rename"):
    _names({"path": {"a/b": {}, "a b": {}}})
  study = study_file.Study("swe/x", (), {}, ("loss",), ())
  arms = {"arms": {"a/b": {}, "a b": {}}, "seeds": [0]}
  with pytest.raises(errors.UsageError, match="both be the run a_b-lr"):
    study_file.tuned(study, arms | {"learning_rates": [1, 2, 3]})


@pytest.mark.parametrize(
  "content, says",
  [
    ({"method": ["sew"]}, "'sew' is not one of .*baseline, .*swe"),
    ({"tau": ["150%"]}, "1.5 is not a number between 0 and 1"),
    ({"tau": [True]}, "True is not a number"),
    ({"units": ["2*12"]}, "'2\\*12' is neither"),
    ({"seed": []}, "axes.seed must be a list"),
    ({"seed": 3}, "axes.seed must be a list"),
    ({"depth": [3]}, "axes.depth must be a table .* not one of method"),
    ([], "axes"),
    ("axes: {seed: [0]}", "'experiment' is missing"),
    ("experiment: x\naxis: {seed: [0]}", "unknown key 'axis'"),
    ("experiment: x\nmetrics: loss", "metrics .'loss'. must be a list"),
    ("- a list", "must be a table"),
    ("a: [", "not YAML"),
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
