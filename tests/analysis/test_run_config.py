"""What a report reads off a config: the method, and the row of the paper."""

import re
import types
from unittest import mock

import pytest

from swe_tf import errors
from swe_tf.analysis import paper
from swe_tf.analysis import report
from swe_tf.analysis import runs as runs_lib
from swe_tf.configs import cost
from swe_tf.methods import catalog
from tests import tiny
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run

_ONCE, _THRICE = [{"loops": 1}], [{"loops": 3}]
_ONE_LOOP = ("one_loop", "1x24", 50)
_REPARAMETERIZE = {"mode": "reparameterize"}
_DRIFTING = {"mode": "drifting_mode"}


@pytest.fixture(name="plug_in")
def fixture_plug_in():
  """Two methods, until the test has ended."""
  catalog.methods()  # Those of the package are loaded once, and must stay.
  with mock.patch.dict(catalog._METHODS):
    for name, ignores in (("frozen", {"tau", "units"}), ("drifting", ())):
      fields = {"build": print, "ignores": frozenset(ignores)}
      method = catalog.Method(name=name, mode=f"{name}_mode", **fields)
      catalog.register(method)
    yield


@pytest.mark.parametrize(
  "task, method, unit, tau",
  [
    (dict(sharing={}), "baseline", "24x1", 0),
    (dict(sharing=_REPARAMETERIZE | {"unit_size": 24}), "baseline", "24x1", 0),
    (dict(sharing=swe(1.0, rule="adaptive")), "swe adaptive", "1x24", None),
    (dict(sharing=swe(0.0)), "baseline", "24x1", 0),
    (dict(sharing=swe()), "swe", "1x24", 10),
    (dict(sharing=swe(unit_size=4)), "swe", "4x6", 10),
    (dict(sharing=swe(1.0)), "albert", "1x24", 100),
    (dict(sharing=swe(rule="staged")), "swe staged", "1x24", 10),
    (dict(sharing=swe(rule="adaptive")), "swe adaptive", "1x24", None),
    (dict(sharing=swe(loops=[{"loops": 3}])), "swe 3 loops", "1x24", 10),
    (dict(sharing=swe(0.5, loops=_ONCE, recipe="one_loop")), *_ONE_LOOP),
    (dict(sharing=_REPARAMETERIZE), "reparameterize", "1x24", None),
    (dict(growth="net2net"), "net2net", None, None),
    # Of a plug-in.
    (dict(sharing={"mode": "frozen_mode"}), "frozen", None, None),
    (dict(sharing=_DRIFTING), "drifting", "1x24", 10),
    (
      dict(sharing=_DRIFTING | {"rule": "adaptive"}),
      *("drifting adaptive", "1x24", None),
    ),
    (dict(sharing=swe(rule="MyRule")), "swe MyRule", "1x24", None),
  ],
)
def test_the_method_of_a_config(task, method, unit, tau, plug_in):
  found = runs_lib.describe(config(**task))
  assert found["label"] == method
  assert (found["unit"], found["untie_step"]) == (unit, tau)


@pytest.mark.parametrize(
  "axes, sharing, title",
  [
    ({"method": "swe"}, swe(), "swe 1x24, untied after 10"),
    ({"method": "adaptive"}, swe(rule="adaptive"), "adaptive"),
    ({"arm": "one_loop_30"}, swe(0.3, loops=[{"loops": 1}]), "one_loop_30"),
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
  made = tiny.config_of(tiny.written(tmp_path), {"task": task})
  phases = runs_lib.describe(made.as_dict())["phases"]
  assert sum(a * b for a, b in phases) == cost.training_flops(made)


def test_what_departs_from_algorithm_1_is_named():
  off = {"recipe": ""}
  plain = runs_lib.describe(config(sharing=swe()))
  same = runs_lib.describe(config(sharing=swe(**off)))
  assert same["label"] == "swe" and same["variant"] == plain["variant"]
  found = runs_lib.describe(config(sharing=swe(**off, loops=_THRICE)))
  assert found["label"] == "swe 3 loops"
  assert found["variant"] != plain["variant"]
  assert not found["is_fixed"] and not found["is_papers"]
  adaptive = [
    runs_lib.describe(config(sharing=swe(rule="adaptive", **fields)))["variant"]
    for fields in ({}, off)
  ]
  assert adaptive[0] == adaptive[1]


@pytest.mark.parametrize(
  "fields, says",
  [
    (dict(sharing=swe(untie_step=101)), ".*untie_step"),
    (dict(steps="many"), "not the config of a run .*'many'"),
    (None, "not the config of a run"),
    # Its plug-in is not loaded.
    (dict(sharing={"mode": "unheard_of"}), ".*unheard_of.* plug-in"),
  ],
)
def test_a_run_that_cannot_be_read_is_named(tmp_path, fields, says):
  write_run(tmp_path / "a", config(**(fields or {})), 2.0, end=1)
  if fields is None:  # Cut, as by a full disk.
    (tmp_path / "a" / "params.yaml").write_text("")
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


_METRICS = {"Pretrain": "MLM", "SQuAD average": "SQuAD average"}
_METRICS |= {"GLUE average": "GLUE average"}
_METRICS |= {f"SQuAD v{v}": f"squad_v{v}" for v in ("1.1", "2.0")}
_LARGE = dict(
  layers=24,
  width=1024,
  num_attention_heads=16,
  intermediate_size=4096,
  vocab_size=30522,
  steps=500_000,
  data="shards/wikibooks/*.tfrecord",
)


def _tables(tex):
  """Yields the rows of numbers of every table, by metric."""
  for body in re.findall(r"\\begin{tabular}(.*?)\\end{tabular}", tex, re.S):
    rows = {}
    for line in body.replace("\\hline", "").splitlines():
      head, *cells = line.split("&")
      found = [re.findall(r"\d+\.\d+", cell) for cell in cells]
      if cells and all(len(numbers) == 1 for numbers in found):
        known = [m for s, m in _METRICS.items() if head.strip().startswith(s)]
        name = (known or [head.partition("/")[2].split(" ")[0]])[0]
        rows[name] = [float(numbers[0]) for numbers in found]
    if rows:
      yield rows


def test_every_number_is_the_printed_one(shared):
  (tex,) = (shared / "paper").glob("*.tex")
  tables = list(_tables(tex.read_text()))
  assert len(tables) == paper.TABLES.table.nunique()
  for number, rows in enumerate(tables, start=1):
    held = paper.TABLES[paper.TABLES.table == number]
    assert set(rows) == set(paper.METRICS)
    for metric, values in rows.items():
      assert held[metric].tolist() == values


def test_runs_that_stand_in_two_tables_are_the_same():
  scores = paper.TABLES.drop(columns="table").drop_duplicates()
  assert not scores.duplicated(list(paper.RUN)).any()


def _config(batch_size=512, seq_length=512, **fields):
  content = config(**(_LARGE | fields))
  size = {"global_batch_size": batch_size, "seq_length": seq_length}
  content["task"]["train_data"] |= size
  return content


@pytest.mark.parametrize(
  "changes, row",
  [
    ({}, ("wikibooks", "baseline", 1)),
    (dict(sharing=swe()), ("wikibooks", "swe", 1)),
    (dict(sharing=swe(unit_size=2)), ("wikibooks", "swe", 2)),
    (dict(growth="net2net"), ("wikibooks", "net2net", 1)),
    (dict(sharing=_REPARAMETERIZE), ("wikibooks", "reparameterize", 1)),
    (dict(data="xlnet/*"), ("xlnet", "baseline", 1)),
    (dict(sharing=swe(1.0)), None),
    (dict(sharing=swe(rule="adaptive")), None),
    (dict(data="shards/*.tfrecord"), None),
    (dict(width=64), None),
  ],
)
def test_which_row_of_the_paper_a_run_is(changes, row):
  run = types.SimpleNamespace(**runs_lib.describe(_config(**changes)))
  data, *method = row or ("", "")
  expected = ("large", data, 500_000, *method) if row else None
  assert paper.row_of(run) == expected


def test_the_paper_stands_beside_its_rows_only(tmp_path):
  write_run(tmp_path / "own" / "base", config(), 2.0)
  write_run(tmp_path / "own" / "swe", config(sharing=swe()), 2.0)
  names = [section.name for section in report.make([tmp_path]).sections]
  assert "paper" not in names
  write_run(tmp_path / "base", _config(), 2.0, 0.70)
  write_run(tmp_path / "swe", _config(sharing=swe()), 2.0, 0.72)
  sections = {s.name: s for s in report.make([tmp_path]).sections}
  base, own = sections["paper"].frame.to_dict("records")
  assert (base["method"], base["paper"]) == ("baseline", 73.66)
  assert base["gain"] is None
  assert own["minus"] == pytest.approx(72 - 73.92, abs=1e-4)
  assert own["gain"].mean == pytest.approx(2.0, abs=1e-4)
  assert own["paper_gain"] == pytest.approx(0.26)
