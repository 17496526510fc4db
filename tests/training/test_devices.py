"""Where a run trains: as the config says, or on the TPU of the machine."""

import pytest
import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.training import devices


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
