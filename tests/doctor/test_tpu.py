"""`swe doctor tpu`: the compiler where it is installed, the rest everywhere."""

import importlib.util
import pathlib

import pytest

from swe_tf import errors
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import lowering
from swe_tf.doctor import topologies
from swe_tf.doctor import tpu
from swe_tf.doctor import tpu_summary
from tests import tiny


def _config(*layers):
  return tiny.config_of(
    tiny.overrides("unused"),
    {"task": {"model": {"encoder": {"any": {"num_layers": 6}}}}},
    *layers,
  )


@pytest.mark.parametrize(
  "name, replicas",
  [
    ("v2:2x2", 8),
    ("v3:2x2", 8),
    ("v4:2x2x1", 4),
    ("v4:2x2x4", 16),
    ("v5e:2x2", 4),
    ("v5e:4x4", 16),
    ("v5p:2x2x1", 4),
    ("v6e:2x2", 4),
  ],
)
def test_topologies(name, replicas):
  assert topologies.parse(name).replicas == replicas


@pytest.mark.parametrize("name", ["v5e", "v5e:2x2x1", "v4:2x2", "v9:2x2", ""])
def test_a_topology_that_is_none(name):
  with pytest.raises(errors.UsageError, match="--topology"):
    topologies.parse(name)


def test_without_the_extra_the_message_says_what_to_install(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(errors.UsageError, match=r"swe-tf\[tpu-check\]"):
    tpu.require_compiler()


def test_what_cannot_be_compiled_is_told_first():
  config = _config({"task": {"sharing": {"unit_size": 2}}})
  topology = topologies.parse("v5e:2x2")
  tpu.check(config, topology, [2, 4, 6])
  for depths in ([2, 4], [1, 2, 3], [4, 2, 6], [0]):
    with pytest.raises(errors.UsageError, match="--depths"):
      tpu.check(config, topology, depths)
  with pytest.raises(errors.UsageError, match="global_batch_size"):
    tpu.check(config, topologies.parse("v5e:4x4"), [2])


def test_another_depth_of_a_config_that_is_locked():
  config = _config()
  other = lowering.at_depth(config, 3)
  assert other.task.model.encoder.get().num_layers == 3
  assert config.task.model.encoder.get().num_layers == 6


def test_a_bend_in_the_line_is_told():
  reports = {
    depth: dict.fromkeys(tpu.QUANTITIES, depth**2) for depth in (2, 3, 4)
  }
  found = tpu.extrapolate(reports, 6)["flops"]
  assert found.value == 4 + 6 * 4
  assert found.deviation == pytest.approx(-0.1)
  assert tpu.extrapolate(reports, 3)["flops"] == tpu.Estimate(9)


def test_the_table_says_nothing_where_there_is_no_line():
  def of(size, temporaries):
    reports = {
      depth: dict.fromkeys(tpu.QUANTITIES, size * depth)
      | {"outputs": 1 + (depth > 4), "temporaries": at}
      for depth, at in zip((3, 4, 5), temporaries)
    }
    return tpu.extrapolate(reports, 24)

  found = {
    "stock": of(100, (0, 0, 0)),
    "shared": of(25, (90, 0, 0)),
    "unshared": of(100, (0, 0, 0)),
  }
  table = tpu_summary.make_table(found, topologies.parse("v4:2x2x1"), "")
  cells = [list(column.cells) for column in table.columns]
  rows = {label: rest for label, *rest in zip(*cells)}
  assert rows["fits"] == ["yes", "?", "yes", ""]
  assert rows["peak memory"][1:] == ["?", rows["peak memory"][0], ""]
  assert rows["temporaries"] == ["0 B", "?", "0 B", ""]
  assert rows["all-reduce"][-1] == "0.2500"
  assert "--depths" in tpu_summary.how_far_from_a_line(found)
  del found["shared"]
  assert "--depths" not in tpu_summary.how_far_from_a_line(found)


@pytest.mark.slow
@pytest.mark.skipif(
  importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu-check"
)
def test_the_real_compiler_confirms_the_cost_model(tmp_path):
  config = _config({"runtime": {"mixed_precision_dtype": "bfloat16"}})
  topology = topologies.parse("v5e:2x2")
  said = []
  reports = tpu.compile_steps(
    config, topology, [2, 3, 4], pathlib.Path(tmp_path), jobs=2, say=said.append
  )
  assert reports["unshared"] == reports["stock"]
  cost = cost_lib.estimate(config)
  for kind, phase in cost.phases.items():
    found = tpu.extrapolate(reports[kind], 6)
    assert found["all_reduce"].value == phase.all_reduce_bytes
    assert found["all_reduce"].deviation == 0.0
  assert (
    tpu.extrapolate(reports["shared"], 6)["peak"].value
    <= tpu.extrapolate(reports["stock"], 6)["peak"].value
  )
  compiled = sum("compiled" in text for text in said)
  tpu.compile_steps(
    config, topology, [2, 3, 4], pathlib.Path(tmp_path), jobs=2, say=said.append
  )
  assert compiled == sum("compiled" in text for text in said), "kept reports"
