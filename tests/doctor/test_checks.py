"""Every finding of `swe doctor`, and `swe doctor tpu` with its compiler."""

import importlib.metadata
import importlib.util
import math
import os
import pathlib
import shutil

import pytest
import tensorflow as tf

from official.core import train_utils
from swe_tf import errors
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import checks
from swe_tf.doctor.tpu import depths as depths_lib
from swe_tf.doctor.tpu import programs
from swe_tf.doctor.tpu import topologies
from swe_tf.training import identity
from tests import tiny


@pytest.fixture(scope="module", name="records")
def _records(tmp_path_factory):
  return tiny.write_records(tmp_path_factory.mktemp("records"))


def _config(records, *layers):
  return tiny.config_of(tiny.overrides(records), *layers)


def test_versions(monkeypatch):
  assert "tf-keras 2." in checks.check_versions()
  monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.19.0")
  with pytest.raises(errors.UsageError, match="tensorflow 2.20, but 2.19.0 is"):
    checks.check_versions()


_FP16 = {"mixed_precision_dtype": "float16"}


@pytest.mark.parametrize(
  "runtime, finding",
  [
    ({"loss_scale": 128}, "loss_scale .128. is not used with float32; unset"),
    (_FP16, "slower than float32; unset"),
    (_FP16 | {"distribution_strategy": "tpu"}, "set it to bfloat16"),
    (_FP16 | {"loss_scale": -1.0}, "must be 'dynamic' or a number above 0"),
  ],
)
def test_precision(records, runtime, finding):
  with pytest.raises(errors.UsageError, match=finding):
    checks.check_precision(_config(records, {"runtime": runtime}))


def test_a_warm_up_that_outlasts_the_run(records):
  warmup = {"warmup": {"polynomial": {"warmup_steps": 50}}}
  decay = {"learning_rate": {"polynomial": {"decay_steps": tiny.STEPS}}}
  layer = {"trainer": {"optimizer_config": {**warmup, **decay}}}
  with pytest.raises(checks.Warned, match="never reaches its peak"):
    checks.check_schedule(_config(records, layer))


def test_every_shard_is_looked_into(tmp_path):
  records = tiny.write_records(str(tmp_path))
  with tf.io.TFRecordWriter(str(tmp_path / "records-2.tfrecord")) as writer:
    writer.write(tf.train.Example().SerializeToString())
  with pytest.raises(errors.UsageError, match="records-2.tfrecord has 0 "):
    checks.check_data(_config(records))


def test_the_room_is_that_of_a_real_checkpoint(records, tmp_path, monkeypatch):
  config = _config(records)
  text = checks.check_room(config, str(tmp_path / "new"))
  assert text.startswith(f"{config.trainer.max_to_keep + 1} checkpoints of")
  size = float(text.split("checkpoints of ")[1].split(" kB")[0])
  tiny.train(config, tmp_path / "run")
  reader = tf.train.load_checkpoint(str(tmp_path / "run"))
  # What describes the graph and the run weighs much in a tiny model only.
  tensors = [
    reader.get_tensor(key).nbytes
    for key in reader.get_variable_to_shape_map()
    if "OBJECT_GRAPH" not in key and not key.startswith("identity/")
  ]
  assert math.isclose(1000 * size, sum(tensors), rel_tol=0.05)

  usage = shutil.disk_usage(tmp_path)._replace(free=1000)
  monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
  with pytest.raises(
    errors.UsageError, match="has room for 1.00 kB; free some"
  ):
    checks.check_room(config, str(tmp_path / "new"))


def test_a_run_of_another_config(records, tmp_path):
  directory = str(tmp_path / "run")
  config = _config(records)
  assert "new, no checkpoint" in checks.check_model_dir(config, directory)
  os.makedirs(directory)
  train_utils.serialize_config(config, directory)
  checkpoint = tf.train.Checkpoint(
    identity=identity.Identity(config, data={}),
    global_step=tf.Variable(4, dtype=tf.int64),
  )
  tf.train.CheckpointManager(checkpoint, directory, 1).save(4)
  assert "resume from ckpt-4" in checks.check_model_dir(config, directory)
  other = _config(records, {"task": {"sharing": {"untie_step": 3}}})
  (found,) = checks.warnings(other, directory)
  assert "ckpt-4 is of another run" in found and "tau was 7 and is 3" in found


def test_init_checkpoint(records, tmp_path):
  config = _config(records)
  assert checks.check_init_checkpoint(config, None).startswith("none")
  path = tf.train.Checkpoint(x=tf.Variable(0.0)).write(str(tmp_path / "c"))
  config = _config(records, {"task": {"init_checkpoint": path}})
  with pytest.raises(errors.UsageError, match="Give a checkpoint that"):
    checks.check_init_checkpoint(config, None)


def _deep(*layers):
  return _config("unused", {"task": tiny.encoder(num_layers=6)}, *layers)


def _units(size):
  return {"sharing": {"unit_size": size}}


def _recipe(name):
  return {"sharing": {"recipe": name, "untie_step": None}}


def test_what_cannot_be_compiled_is_refused(monkeypatch):
  for name, replicas in {"v2:2x2": 8, "v4:2x2x4": 16, "v5e:4x4": 16}.items():
    assert topologies.parse(name).replicas == replicas
  for name in ("v5e", "v5e:2x2x1", "v4:2x2", "v9:2x2", ""):
    with pytest.raises(errors.UsageError, match="topology .* is not known"):
      topologies.parse(name)
  config = _deep({"task": {"sharing": {"unit_size": 2}}})
  for depths in ([4, 6], [4], [6]):
    assert depths_lib.choose(config, depths)["shared"] == depths
  # With 2 layers, one unit, nothing would be shared.
  for depths in ([4, 6, 8, 10], [2, 4, 6], [3], [6, 4], [0]):
    with pytest.raises(errors.UsageError, match="that suit the method: 4, 6"):
      depths_lib.choose(config, depths)
  programs.check_batch(config, topologies.parse("v5e:2x2"))
  with pytest.raises(errors.UsageError, match="global_batch_size"):
    programs.check_batch(config, topologies.parse("v5e:4x4"))
  # The config may be locked.
  assert depths_lib.num_layers(depths_lib.at_depth(config, 2)) == 2
  assert depths_lib.num_layers(config) == 6
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(errors.UsageError, match=r"\.\[tpu-check\]"):
    programs.require_compiler()


_GROWN = {"sharing": {"mode": "none", "untie_step": None}}


@pytest.mark.parametrize(
  "task, depths",
  [
    ({}, [[3, 4, 5]] * 4),
    (_units(2), [[4, 6, 8], [6, 8, 10], [4, 6, 8], [4, 6, 8]]),
    # One layer is applied at any depth; nothing is to be extrapolated.
    (_recipe("one_loop"), [[3, 4, 5], [24], [3, 4, 5], [3, 4, 5]]),
    # A quarter of the layers.
    (_recipe("few_loops"), [[4, 8, 12], [12, 16, 20], [4, 8, 12], [4, 8, 12]]),
    (_GROWN | {"growth": {"method": "net2net"}}, [[3, 4, 5]] * 4),
  ],
)
def test_at_least_three_layers_and_units_are_applied(task, depths):
  config = _deep({"task": tiny.encoder(num_layers=24)}, {"task": task})
  assert list(depths_lib.choose(config).values()) == depths


def test_a_bend_in_the_line_is_measured():
  reports = {
    depth: dict.fromkeys(depths_lib.QUANTITIES, depth**2) for depth in (2, 3, 4)
  }
  found = depths_lib.extrapolate(reports, 6)["flops"]
  assert found.value == 4 + 6 * 4
  assert found.deviation == pytest.approx(-0.1)
  assert depths_lib.extrapolate(reports, 3)["flops"] == depths_lib.Estimate(9)
  del reports[3]
  assert depths_lib.extrapolate(reports, 6)["flops"].deviation is None
  depths = {"stock": [2, 4]}
  assert "unchecked" in depths_lib.how_far_from_a_line({"stock": {}}, depths)


def test_the_table_says_nothing_where_there_is_no_line():
  def of(size, temporaries):
    reports = {
      depth: dict.fromkeys(depths_lib.QUANTITIES, size * depth)
      | {"outputs": 1 + (depth > 4), "temporaries": at}
      for depth, at in zip((3, 4, 5), temporaries)
    }
    return depths_lib.extrapolate(reports, 24)

  depths = {"stock": (3, 4, 5)}
  found = {"stock": of(100, (0, 0, 0)), "shared": of(25, (90, 0, 0))}
  found["unshared"] = found["stock"]
  table = depths_lib.make_table(found, topologies.parse("v4:2x2x1"), "")
  cells = [list(column.cells) for column in table.columns]
  rows = {label: rest for label, *rest in zip(*cells)}
  assert rows["fits"] == ["yes", "?", "yes", ""]
  assert rows["peak memory"][1:] == ["?", rows["peak memory"][0], ""]
  assert rows["temporaries"] == ["0 bytes", "?", "0 bytes", ""]
  assert rows["all-reduce"][-1] == "0.2500"
  assert "larger depths" in depths_lib.how_far_from_a_line(found, depths)
  del found["shared"]
  assert "larger depths" not in depths_lib.how_far_from_a_line(found, depths)


def _reports(peak, kind, at=(3, 4, 5)):
  """Returns reports of a step whose memory does not depend on its depth."""
  parts = dict.fromkeys(depths_lib.QUANTITIES, 0) | {"temporaries": peak}
  return {kind: dict.fromkeys(at, parts)}


def test_the_fewest_micro_batches_that_fit():
  topology = topologies.parse("v5e:2x2")  # 16 GiB.
  config = _deep({"task": {"train_data": {"global_batch_size": 48}}})
  tried, said = [], []

  def fewest(compile_steps):
    return programs.fewest_micro_batches(
      config, topology, 6, compile_steps, said.append
    )

  def compile_steps(cut, kinds, depths=None):
    (kind,) = kinds
    count = cut.task.micro_batches
    tried.append((count, kind))
    if count == 1:
      return {kind: {3: {"too_large": "RESOURCE_EXHAUSTED"}}}
    # The shared step is the largest, as it may be.
    peak = (40 if kind == "shared" else 30) * 2**30 / count
    if depths is None:
      return _reports(peak, kind)
    # All layers need more than the line says.
    return _reports(1.3 * peak, kind, depths[kind])

  cut, reports = fewest(compile_steps)
  assert cut.task.micro_batches == 4
  assert list(reports) == ["stock", "shared", "unshared", "evaluation"]
  assert list(reports["shared"]) == [6]
  assert reports["stock"] == _reports(7.5 * 2**30, "stock")["stock"]
  # Of 12 sequences per replica; nothing after a step that does not fit.
  two, real = [(2, "stock"), (2, "shared")], "shared"
  lines = [(count, kind) for count in (3, 4) for kind in [*reports, real]]
  assert tried == [(1, "stock"), *two, *lines]
  assert "the shared step is too large (3, 4, 5 layers" in said[1]
  assert "18.61 GB of 17.18 GB: the shared step is too large (6 " in said[2]
  assert "micro_batches=4 needs 13.96 GB of 17.18 GB: fits (6 l" in said[-1]

  with pytest.raises(errors.Failed, match="not even one sequence"):
    fewest(lambda _, kinds: _reports(2**40, "stock"))


@pytest.mark.slow
@pytest.mark.skipif(
  importlib.util.find_spec("libtpu") is None, reason="needs the extra tpu-check"
)
def test_the_real_compiler_confirms_the_cost_model(tmp_path):
  config = _deep({"runtime": {"mixed_precision_dtype": "bfloat16"}})
  topology = topologies.parse("v5e:2x2")
  said = []
  depths = dict.fromkeys(["stock", "shared", "unshared"], [2, 3, 4])

  def compile_steps():
    return programs.compile_steps(
      config, topology, depths, pathlib.Path(tmp_path), 2, said.append
    )

  reports = compile_steps()
  assert reports["unshared"] == reports["stock"]
  found = {
    kind: depths_lib.extrapolate(reports[kind], 6)
    for kind in ("stock", "shared", "unshared")
  }
  for kind, phase in cost_lib.estimate(config).phases.items():
    # Beside the gradients: total and count of two metrics.
    assert found[kind]["all_reduce"].value == phase.all_reduce_bytes + 4 * 4
    assert found[kind]["all_reduce"].deviation == 0.0
  assert found["shared"]["peak"].value <= found["stock"]["peak"].value
  said.clear()
  compile_steps()
  assert not any("compiled" in text for text in said), "kept reports"
