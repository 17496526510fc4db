"""Where a run trains: by its config, on the machine's TPU, with its workers."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.configs import limits
from swe_tf.training import devices
from tests import tiny

_CLUSTER = '"cluster": {"worker": ["a:1", "b:2"]}'


@pytest.mark.parametrize(
  "runtime, name, is_tpu_vm, expected",
  [
    ({}, None, False, ("mirrored", None)),
    ({}, None, True, ("tpu", "local")),
    ({}, "pod", False, ("tpu", "pod")),
    ({"tpu": "mine"}, "pod", True, ("tpu", "mine")),
    ({"distribution_strategy": "off"}, "pod", True, ("off", None)),
    ({"num_gpus": 2}, None, True, ("mirrored", None)),
    ({"distribution_strategy": "tpu"}, None, True, ("tpu", "local")),
    ({"distribution_strategy": "tpu"}, None, False, None),
  ],
)
def test_where(runtime, name, is_tpu_vm, expected, monkeypatch):
  monkeypatch.setattr(devices, "has_local_tpu", lambda: is_tpu_vm)
  monkeypatch.delenv("TPU_NAME", raising=False)
  if name:
    monkeypatch.setenv("TPU_NAME", name)
  config = cfg.RuntimeConfig(**runtime)
  if expected is None:
    with pytest.raises(errors.UsageError, match="TPU_NAME"):
      devices.resolve(config)
  else:
    assert devices.resolve(config) == expected


def test_a_large_model_on_a_cpu_is_loud(capsys):
  large = [tf.TensorSpec([3_001, 4_000])]
  for strategy in (
    tf.distribute.get_strategy(),
    tf.distribute.OneDeviceStrategy("CPU:1"),
  ):
    for weights, is_loud in ((large, True), ([], False)):
      told = devices.describe(strategy, weights)
      assert told.startswith("training on CPU:"), told
      printed = capsys.readouterr().out
      assert ("12 million weights train on a CPU" in printed) == is_loud


def _task(index):
  return f'{{{_CLUSTER}, "task": {{"type": "worker", "index": {index}}}}}'


def _count(monkeypatch, text, strategy="multi_worker_mirrored"):
  monkeypatch.setenv("TF_CONFIG", text)
  runtime = cfg.RuntimeConfig(distribution_strategy=strategy)
  return devices.num_workers(runtime)


@pytest.mark.parametrize(
  "text, expected", [("", 1), ("{}", 1), (_task(0), 2), (_task(1), 2)]
)
def test_counts_the_workers(monkeypatch, text, expected):
  assert _count(monkeypatch, text) == expected
  assert devices.is_chief() == (text != _task(1))
  assert os.environ.get("TF_CONFIG") != ""  # TensorFlow does not take it.


def test_the_first_worker_beside_a_chief_does_not_save(monkeypatch):
  text = _task(0).replace('"worker":', '"chief": ["c:3"], "worker":')
  assert _count(monkeypatch, text) == 3
  assert not devices.is_chief()
  monkeypatch.setenv(
    "TF_CONFIG", text.replace('"type": "worker"', '"type": "chief"')
  )
  assert devices.is_chief()


@pytest.mark.parametrize(
  "text, message",
  [
    (_task("INDEX"), "Expecting value"),
    ("3", ""),
    (_task(0).replace("worker", "ps", 1), "the jobs are ps"),
    (f'{{{_CLUSTER}, "task": {{"type": "x"}}}}', "x"),
    (_task(2), "2"),
  ],
)
def test_a_wrong_cluster_is_one_line(monkeypatch, text, message):
  with pytest.raises(errors.UsageError) as raised:
    _count(monkeypatch, text)
  told = str(raised.value)
  assert "is not a worker and its cluster" in told and "\n" not in told
  assert message in told


def test_workers_must_be_able_to_share_the_batch(monkeypatch):
  with pytest.raises(errors.UsageError, match="each would train alone"):
    _count(monkeypatch, _task(0), "mirrored")
  data = {"task": {"train_data": {"global_batch_size": 9}}}
  config = tiny.config_of(tiny.overrides("x"), data)
  limits.check_replicas(config)
  with pytest.raises(errors.UsageError, match=r"\(9\) cannot .* 2 replicas"):
    limits.check_replicas(config, workers=2)
  with pytest.raises(errors.UsageError, match="'parameter_server'. must be"):
    tiny.config_of(
      tiny.overrides("x"),
      {"runtime": {"distribution_strategy": "parameter_server"}},
    )


_BEFORE_THE_STRATEGY = """
from tensorflow.python.eager import context
from swe_tf.doctor import checks
from swe_tf.studies import experiments
from tests import tiny

config = tiny.config_of(tiny.overrides("dummy"))
experiments.check_metrics(config)
checks.check_devices(config)
assert context.context()._context_handle is None, "TensorFlow has started"
"""


def test_what_is_checked_before_workers_connect_runs_no_op():
  # Else "Collective ops must be configured at program startup".
  subprocess.run([sys.executable, "-c", _BEFORE_THE_STRATEGY], check=True)
