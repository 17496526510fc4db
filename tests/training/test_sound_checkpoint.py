"""Checkpoints: damage is found, and the one before used; no steps are mixed."""

import os
import pathlib
import shutil
import threading
import time

import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf.doctor import checks as doctor
from swe_tf.training import checkpoint
from tests import tiny

_DATA, _INDEX = ".data-00000-of-00001", ".index"


def _flip(path, place):
  content = bytearray(path.read_bytes())
  content[int(place * (len(content) - 1))] ^= 1 << 3
  path.write_bytes(content)


def _cut(path, place):
  path.write_bytes(path.read_bytes()[: int(place * path.stat().st_size)])


def _config(records, interval, *overrides):
  return tiny.config_of(
    tiny.overrides(records), {"trainer": tiny.every(interval)}, *overrides
  )


@pytest.fixture(scope="module", name="trained")
def _trained(tmp_path_factory):
  """A run of 12 steps with checkpoints after steps 4, 8 and 12."""
  records = tmp_path_factory.mktemp("records")
  config = _config(tiny.write_records(records), 4)
  model_dir = tmp_path_factory.mktemp("run") / "model"
  tiny.runner.make_runner(config, str(model_dir), mode="train").run()
  return config, model_dir


@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("damage", [_flip, _cut])
@pytest.mark.parametrize("part", [_DATA, _INDEX])
def test_damage_is_found_wherever_it_is(
  trained, tmp_path, part, damage, place, capsys
):
  config, model_dir = trained
  copy = shutil.copytree(model_dir, tmp_path / "model")
  newest = tf.train.latest_checkpoint(str(copy))
  assert newest.endswith("ckpt-12")
  assert checkpoint.newest_sound(newest) == newest
  damage(pathlib.Path(newest + part), place)
  found = checkpoint.newest_sound(newest)
  assert found == str(copy / "ckpt-8")
  shown = capsys.readouterr().out
  assert "ckpt-12 is damaged" in shown and "continuing from" in shown
  # The paths in the state are those of the copy, and none is made up.
  assert os.path.exists(found + _INDEX)
  list(doctor.warnings(config, str(copy)))  # `swe train` gets as far as that.


def test_a_run_goes_on_from_the_one_before_and_ends_the_same(trained, tmp_path):
  config, model_dir = trained
  copy = shutil.copytree(model_dir, tmp_path / "model")
  _flip(copy / f"ckpt-12{_DATA}", 0.5)
  _cut(copy / f"ckpt-8{_DATA}", 0.5)
  tiny.runner.make_runner(config, str(copy), mode="train").run()
  tiny.assert_same_checkpoints(model_dir / "ckpt-12", copy / "ckpt-12")


def test_nothing_sound_is_one_line(trained, tmp_path):
  _, model_dir = trained
  copy = shutil.copytree(model_dir, tmp_path / "model")
  for step in (4, 8, 12):
    (copy / f"ckpt-{step}{_DATA}").unlink()
  with pytest.raises(errors.UsageError, match="every checkpoint before it"):
    checkpoint.newest_sound(str(copy / "ckpt-12"))


def _train(records, model_dir, growth, in_background):
  """Trains with a checkpoint every other step; tau is in between."""
  config = _config(records, 2, {"task": growth})
  how = {"mode": "train", "enable_async_checkpointing": in_background}
  tiny.runner.make_runner(config, str(model_dir), **how).run()
  last = range(tiny.STEPS - 6, tiny.STEPS, 2)
  return [model_dir / f"ckpt-{step}" for step in last]


@pytest.mark.parametrize(
  "growth", [{}, {"growth": {"method": "net2net"}, "sharing": {"mode": "none"}}]
)
def test_a_slow_disk_does_not_mix_steps(tmp_path, monkeypatch, growth):
  records = tiny.write_records(tmp_path)
  wanted = _train(records, tmp_path / "at_once", growth, False)
  write = tf.train.Checkpoint._write

  def write_slowly(self, *args, **kwargs):
    if threading.current_thread() is not threading.main_thread():
      time.sleep(0.5)  # Several steps.
    return write(self, *args, **kwargs)

  monkeypatch.setattr(tf.train.Checkpoint, "_write", write_slowly)
  found = _train(records, tmp_path / "later", growth, True)
  for one, other in zip(wanted, found, strict=True):
    tiny.assert_same_checkpoints(one, other)
