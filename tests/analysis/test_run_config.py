"""What a report reads off a config: the method, and what is its own."""

from unittest import mock

import pytest

from swe_tf import errors
from swe_tf.analysis import runs as runs_lib
from swe_tf.configs import cost
from swe_tf.methods import catalog
from tests import tiny
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run


@pytest.fixture(name="plug_in")
def fixture_plug_in():
  """Two methods, until the test has ended."""
  with mock.patch.dict(catalog._METHODS):
    for name, ignores in (("frozen", {"tau", "units"}), ("drifting", ())):
      fields = {"build": print, "ignores": frozenset(ignores)}
      method = catalog.Method(name=name, mode=f"{name}_mode", **fields)
      catalog.register(method)
    yield


@pytest.mark.parametrize(
  "task, method, unit, tau",
  [
    (dict(sharing={"untie_fraction": 0.3}), "baseline", "24x1", 0),
    (dict(sharing=swe(0.0)), "baseline", "24x1", 0),
    (dict(sharing=swe(unit_size=24)), "baseline", "24x1", 0),
    (dict(sharing=swe()), "swe", "1x24", 10),
    (dict(sharing=swe(untie_step=7)), "swe", "1x24", 7),
    (dict(sharing=swe(unit_size=4)), "swe", "4x6", 10),
    (dict(sharing=swe(1.0)), "albert", "1x24", 100),
    (dict(sharing=swe(rule="staged")), "swe staged", "1x24", 10),
    (dict(sharing=swe(rule="adaptive")), "swe adaptive", "1x24", None),
    (dict(sharing=swe(loops=[{"loops": 3}])), "swe 3 loops", "1x24", 10),
    (
      dict(sharing=swe(0.5, loops=[{"loops": 1}], recipe="one_loop")),
      "one_loop",
      "1x24",
      50,
    ),
    (dict(sharing={"mode": "reparameterize"}), "reparameterize", "1x24", None),
    (dict(growth="net2net"), "net2net", None, None),
    (dict(growth="stacking"), "stacking", None, None),
  ],
)
def test_the_method_of_a_config(task, method, unit, tau):
  found = runs_lib.describe(config(**task))
  assert found["label"] == method
  assert (found["unit"], found["untie_step"]) == (unit, tau)


@pytest.mark.parametrize(
  "axes, sharing, title",
  [
    ({"method": "swe"}, swe(), "swe 1x24, untied after 10"),
    ({"method": "adaptive"}, swe(rule="adaptive"), "adaptive"),
    ({"arm": "one_loop_30"}, swe(0.3, loops=[{"loops": 1}]), "one_loop_30"),
    ({"arm": "never"}, swe(1.0), "never"),
    # The ends of a sweep over tau have names of their own.
    ({"method": "swe"}, swe(0.0), "baseline"),
    ({"method": "swe"}, swe(1.0), "albert"),
    ({"arm": "short"}, {"mode": "none"}, "baseline"),
  ],
)
def test_a_run_has_the_name_that_its_study_gave_it(axes, sharing, title):
  found = runs_lib.describe(config(sharing=sharing), axes)
  assert found["title"] == title


@pytest.mark.parametrize(
  "task",
  [
    {"sharing": {"mode": "none"}},
    {"sharing": {"mode": "none"}, "growth": {"method": "net2net"}},
    {"sharing": swe(rule="adaptive")},
    {"sharing": swe(0.5, loops=[{"loops": 1}])},
  ],
)
def test_flops_are_those_of_the_cost_model(task, tmp_path):
  records = tiny.write_records(str(tmp_path))
  made = tiny.config_of(tiny.overrides(records), {"task": task})
  phases = runs_lib.describe(made.as_dict())["phases"]
  assert sum(a * b for a, b in phases) == cost.training_flops(made)


@pytest.mark.parametrize(
  "fields, method, unit, tau",
  [
    (dict(mode="frozen_mode"), "frozen", None, None),
    (dict(mode="drifting_mode"), "drifting", "1x24", 10),
    (
      dict(mode="drifting_mode", rule="adaptive"),
      "drifting adaptive",
      "1x24",
      None,
    ),
    (dict(mode="swe", rule="MyRule"), "swe MyRule", "1x24", None),
  ],
)
def test_the_method_of_a_plug_in(fields, method, unit, tau, plug_in):
  found = runs_lib.describe(config(sharing=fields))
  assert (found["label"], found["unit"]) == (method, unit)
  assert found["untie_step"] == tau


def test_what_departs_from_algorithm_1_is_named():
  off = catalog.KNOBS | {"recipe": ""}
  plain = runs_lib.describe(config(sharing=swe()))
  same = runs_lib.describe(config(sharing=swe(**off)))
  assert same["label"] == "swe" and same["variant"] == plain["variant"]
  for knob, label in (
    ({"own_init": True}, "swe own_init=True"),
    (
      {"loops": [{"loops": 3}], "untied_as": "noise"},
      "swe 3 loops untied_as=noise",
    ),
  ):
    found = runs_lib.describe(config(sharing=swe(**(off | knob))))
    assert found["label"] == label and found["variant"] != plain["variant"]
    assert not found["is_fixed"] and not found["is_papers"]
  adaptive = [
    runs_lib.describe(config(sharing=swe(rule="adaptive", **fields)))["variant"]
    for fields in ({}, off)
  ]
  assert adaptive[0] == adaptive[1]


@pytest.mark.parametrize(
  "fields, says",
  [
    (dict(sharing=swe(untie_step=101)), "untie_step"),
    # Its plug-in is not loaded.
    (dict(sharing={"mode": "unheard_of"}), ".*unheard_of.* plug-in"),
    (dict(growth="unheard_of"), ".*unheard_of.* plug-in"),
  ],
)
def test_a_run_that_cannot_be_read_is_named(tmp_path, fields, says):
  write_run(tmp_path / "a", config(**fields), 2.0)
  with pytest.raises(errors.UsageError, match=rf"a/params\.yaml: {says}"):
    fake_runs.read(tmp_path)


def test_an_encoder_that_nobody_knows():
  content = config(sharing=swe())
  content["task"]["model"] = {"encoder": {"type": "other", "other": {"a": 1}}}
  found = runs_lib.describe(content)
  for key in ("model_size", "unit", "phases"):
    assert found[key] is None


def test_runs_that_differ_in_what_matters_are_never_averaged(tmp_path, plug_in):
  bound = ["find_repeated_blocks.finder = @mine"]
  sharings = {
    "baseline; bindings=unset": {"mode": "none"},
    "baseline; bindings=['a']": {"mode": "none", "bindings": ["a"]},
    "swe 1x24, untied after 10; bindings=unset": swe(bindings=[]),
    f"swe 1x24, untied after 10; bindings={bound}": swe(bindings=bound),
    "frozen; rho=unset": {"mode": "frozen_mode"},
    "frozen; rho=0.3": {"mode": "frozen_mode", "rho": 0.3},
    "drifting; untie_step=10": {"mode": "drifting_mode"},
    "drifting; untie_step=20": {"mode": "drifting_mode", "untie_step": 20},
    "drifting 2x12": {"mode": "drifting_mode", "unit_size": 2},
  }
  for i, sharing in enumerate(sharings.values()):
    write_run(tmp_path / f"{i}", config(sharing=sharing), 2.0)
  # What a method ignores parts no runs.
  same = {"mode": "frozen_mode", "unit_size": 2, "untie_fraction": 0.5}
  write_run(tmp_path / "same", config(seed=1, sharing=same), 2.0)
  arms = fake_runs.summarize(tmp_path)
  assert dict(arms.seeds) == {
    name: 2 if name == "frozen; rho=unset" else 1 for name in sharings
  }
  assert arms.setting.nunique() == 1
  (baseline,) = arms[arms.is_baseline.astype(bool)].arm
  assert baseline == "baseline; bindings=unset"
