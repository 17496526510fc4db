"""What is written while training goes on is what the variables were then."""

import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny


def _train(records, model_dir, growth, in_background):
  """Trains with a checkpoint every other step; tau is in between."""
  layers = tiny.overrides(records)
  every = ("checkpoint_interval", "steps_per_loop", "summary_interval")
  layers["trainer"] |= dict.fromkeys(every, 2)
  config = tiny.config_of(layers, {"task": growth})
  tiny.runner.make_runner(
    config,
    str(model_dir),
    mode="train",
    enable_async_checkpointing=in_background,
  ).run()
  return [
    tf.train.load_checkpoint(str(model_dir / f"ckpt-{step}"))
    for step in range(tiny.STEPS - 6, tiny.STEPS, 2)
  ]


@pytest.mark.parametrize("growth", [{}, {"growth": {"method": "net2net"}}])
def test_a_slow_disk_does_not_mix_steps(tmp_path, monkeypatch, growth):
  if growth:
    growth |= {"sharing": {"mode": "none"}}
  records = tiny.write_records(str(tmp_path))
  wanted = _train(records, tmp_path / "at_once", growth, False)
  write = tf.train.Checkpoint._write

  def write_slowly(self, *args, **kwargs):
    if threading.current_thread() is not threading.main_thread():
      time.sleep(0.5)  # Several steps.
    return write(self, *args, **kwargs)

  monkeypatch.setattr(tf.train.Checkpoint, "_write", write_slowly)
  found = _train(records, tmp_path / "later", growth, True)
  for one, other in zip(wanted, found, strict=True):
    keys = one.get_variable_to_shape_map().keys()
    assert keys == other.get_variable_to_shape_map().keys()
    for key in keys:
      if "OBJECT_GRAPH" not in key and "save_counter" not in key:
        np.testing.assert_array_equal(
          one.get_tensor(key), other.get_tensor(key), err_msg=key
        )
