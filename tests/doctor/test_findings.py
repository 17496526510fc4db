"""Every finding of `swe doctor`: what, where, and how to mend it."""

import importlib.metadata
import json
import math
import os
import shutil

import pytest
import tensorflow as tf

from official.core import train_utils
from swe_tf import errors
from swe_tf.doctor import checks
from swe_tf.doctor import findings
from tests import tiny


@pytest.fixture(scope="module", name="records")
def _records(tmp_path_factory):
  return tiny.write_records(str(tmp_path_factory.mktemp("records")))


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
  with pytest.raises(findings.Warned, match="never reaches its peak"):
    checks.check_schedule(_config(records, layer))


def test_every_shard_is_looked_into(tmp_path):
  records = tiny.write_records(str(tmp_path))
  with tf.io.TFRecordWriter(str(tmp_path / "records-2.tfrecord")) as writer:
    writer.write(tf.train.Example().SerializeToString())
  with pytest.raises(errors.UsageError, match="records-2.tfrecord has 0 "):
    checks.check_data(_config(records))


def test_hosts(records, monkeypatch):
  config = _config(records)
  assert "1 host(s), 3 file(s)" in checks.check_hosts(config)
  workers = [f"host{i}:1" for i in range(4)]
  monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": workers}}))
  with pytest.raises(findings.Warned, match="3 file.* 4 hosts .* prepare 4 sh"):
    checks.check_hosts(config)
  monkeypatch.setenv("TF_CONFIG", "{")
  with pytest.raises(errors.UsageError, match="TF_CONFIG"):
    checks.check_hosts(config)


def test_the_room_is_that_of_a_real_checkpoint(records, tmp_path, monkeypatch):
  config = _config(records)
  text = checks.check_room(config, str(tmp_path / "new"))
  assert text.startswith(f"{config.trainer.max_to_keep + 1} checkpoints of")
  size = float(text.split("checkpoints of ")[1].split(" kB")[0])
  runner = tiny.make_runner(config, str(tmp_path / "run"))
  with runner.strategy.scope():
    runner.controller.train(tiny.STEPS)
  reader = tf.train.load_checkpoint(str(tmp_path / "run"))
  # What describes the graph weighs much in a tiny model only.
  tensors = [
    reader.get_tensor(key).nbytes
    for key in reader.get_variable_to_shape_map()
    if "OBJECT_GRAPH" not in key
  ]
  assert math.isclose(1000 * size, sum(tensors), rel_tol=0.05)

  usage = shutil.disk_usage(tmp_path)._replace(free=1000)
  monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
  with pytest.raises(errors.UsageError, match="has room for 1 kB; free some"):
    checks.check_room(config, str(tmp_path / "new"))


def test_a_run_of_another_config(records, tmp_path):
  directory = str(tmp_path / "run")
  config = _config(records)
  assert "new, no checkpoint" in checks.check_model_dir(config, directory)
  os.makedirs(directory)
  train_utils.serialize_config(config, directory)
  checkpoint = tf.train.Checkpoint(x=tf.Variable(0))
  tf.train.CheckpointManager(checkpoint, directory, 1).save(4)
  assert "resume from ckpt-4" in checks.check_model_dir(config, directory)
  how_only = {"trainer": {"checkpoint_interval": 3}}
  checks.check_model_dir(_config(records, how_only), directory)
  other = _config(records, {"task": {"sharing": {"untie_step": 3}}})
  message = "task.sharing.untie_step was 7 and is 3. Choose"
  with pytest.raises(errors.UsageError, match=message):
    checks.check_model_dir(other, directory)
  (found,) = checks.warnings(other, directory)
  assert "untie_step was 7" in found


def test_init_checkpoint(records, tmp_path):
  config = _config(records)
  assert checks.check_init_checkpoint(config, None).startswith("none")
  path = tf.train.Checkpoint(x=tf.Variable(0.0)).write(str(tmp_path / "c"))
  config = _config(records, {"task": {"init_checkpoint": path}})
  with pytest.raises(errors.UsageError, match="Give a checkpoint that"):
    checks.check_init_checkpoint(config, None)
