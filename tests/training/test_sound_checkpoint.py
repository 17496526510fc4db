"""Damaged checkpoints: found, said, and the one before is used."""

import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf.training import checkpoint
from tests import tiny

_DATA, _INDEX = ".data-00000-of-00001", ".index"


def _flip(path, place):
  content = bytearray(path.read_bytes())
  content[int(place * (len(content) - 1))] ^= 1 << 3
  path.write_bytes(content)


def _cut(path, place):
  path.write_bytes(path.read_bytes()[: int(place * path.stat().st_size)])


@pytest.fixture(scope="module", name="trained")
def _trained(tmp_path_factory):
  """A run of 12 steps with checkpoints after steps 4, 8 and 12."""
  records = tmp_path_factory.mktemp("records")
  base = tiny.overrides(tiny.write_records(str(records)))
  every = ("checkpoint_interval", "steps_per_loop", "summary_interval")
  base["trainer"] |= dict.fromkeys(every, 4)
  config = tiny.config_of(base)
  model_dir = tmp_path_factory.mktemp("run") / "model"
  tiny.runner.make_runner(config, str(model_dir), mode="train").run()
  return config, model_dir


def _values(path):
  reader = tf.train.load_checkpoint(str(path))
  return {
    key: reader.get_tensor(key)
    for key in reader.get_variable_to_shape_map()
    if "save_counter" not in key and "OBJECT_GRAPH" not in key
  }


@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("damage", [_flip, _cut])
@pytest.mark.parametrize("part", [_DATA, _INDEX])
def test_damage_is_found_wherever_it_is(
  trained, tmp_path, part, damage, place, capsys
):
  _, model_dir = trained
  copy = tmp_path / "model"
  shutil.copytree(model_dir, copy)
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


def test_a_run_goes_on_from_the_one_before_and_ends_the_same(trained, tmp_path):
  config, model_dir = trained
  copy = tmp_path / "model"
  shutil.copytree(model_dir, copy)
  _flip(copy / f"ckpt-12{_DATA}", 0.5)
  _cut(copy / f"ckpt-8{_DATA}", 0.5)
  tiny.runner.make_runner(config, str(copy), mode="train").run()
  wanted, found = (_values(path / "ckpt-12") for path in (model_dir, copy))
  assert wanted.keys() == found.keys()
  for key, value in wanted.items():
    np.testing.assert_array_equal(value, found[key], err_msg=key)


def test_nothing_sound_is_one_line(trained, tmp_path):
  _, model_dir = trained
  copy = tmp_path / "model"
  shutil.copytree(model_dir, copy)
  for step in (4, 8, 12):
    (copy / f"ckpt-{step}{_DATA}").unlink()
  with pytest.raises(errors.UsageError, match="every checkpoint before it"):
    checkpoint.newest_sound(str(copy / "ckpt-12"))
