"""A loop that goes wrong: undone, named, and never saved."""

import math
import os
import pathlib
import resource
import signal

import numpy as np
import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf.data import bad_shards
from swe_tf.training import checkpoint
from swe_tf.training import recovery
from tests import tiny

_EVERY = 4  # Steps of a loop, and between checkpoints.


def _layers(records, **task):
  """Returns a run with one phase only, unless the task says otherwise."""
  base = tiny.overrides(str(records))
  base["task"]["sharing"] = {"mode": "none"}
  base["trainer"] |= tiny.every(_EVERY)
  base["task"] |= task
  return base


@pytest.fixture(name="records")
def _records(tmp_path):
  os.makedirs(tmp_path / "records")
  return tiny.write_records(tmp_path / "records")


def _rewrite(path, change, count=None):
  """Passes the first records of a file through `change(index, example)`."""
  records = [r.numpy() for r in tf.data.TFRecordDataset(str(path))]
  with tf.io.TFRecordWriter(str(path)) as writer:
    for index, record in enumerate(records[:count]):
      example = tf.train.Example.FromString(record)
      change(index, example.features.feature)
      writer.write(example.SerializeToString())


def _poison(records, indices):
  """Makes the weights of the predictions of some examples NaN."""

  def change(i, feature):
    if i in indices:
      feature["masked_lm_weights"].float_list.value[:] = [math.nan] * 3

  _rewrite(records.replace("*", "1"), change)


def _poisoned_step(config):
  """Returns the step whose batch has NaN in it."""
  task = tiny.runner.task_factory.get_task(config.task)
  batches = task.build_inputs(config.task.train_data)
  for step, batch in enumerate(batches.take(15), 1):
    if np.isnan(batch["masked_lm_weights"].numpy()).any():
      return step
  raise AssertionError("nothing is poisoned")


def test_goes_back_over_the_untie_step_and_past_the_batches(
  records, tmp_path, capsys
):
  _poison(records, [11])
  layers = _layers(records)
  step = _poisoned_step(tiny.config_of(layers))
  back = (step - 1) // _EVERY * _EVERY
  failed = back + _EVERY
  assert 0 < back < step - 1, "choose another record"
  # The phase is another one at the fault than at the checkpoint.
  layers["task"]["sharing"] = {"untie_step": back + 1}
  layers["trainer"]["recovery_max_trials"] = 1
  config = tiny.config_of(layers)
  recovered = tiny.train(config, tmp_path / "recovered")
  shown = capsys.readouterr().out
  assert f"the loss is nan at step {failed}: back to" in shown
  assert shown.count("untied 1x2 after step") == 2

  # The same by hand: the input is put where the failed loop left it.
  tiny.train(config, tmp_path / "by_hand", back)
  runner = tiny.make_runner(config, tmp_path / "by_hand")
  trainer = runner.trainer
  trainer.train_dataset = trainer.distribute_dataset(
    trainer.task.build_inputs, config.task.train_data, start_step=failed
  )
  trainer._input.is_set = True
  with runner.strategy.scope():
    runner.controller.train(tiny.STEPS)
  tiny.assert_same_state(trainer, recovered)

  # A run that is resumed after the recovery knows what was skipped.
  tiny.train(config, tmp_path / "resumed", failed)
  tiny.assert_same_state(tiny.train(config, tmp_path / "resumed"), recovered)


@pytest.mark.parametrize("trials", [0, 1])
def test_stops_in_one_line_and_saves_no_nan(records, tmp_path, trials):
  _poison(records, range(40))
  layers = _layers(records)
  layers["trainer"]["recovery_max_trials"] = trials
  config = tiny.config_of(layers)
  # The first checkpoint is of a run on sound data.
  (tmp_path / "sound").mkdir()
  sound = _layers(tiny.write_records(tmp_path / "sound"))
  tiny.train(tiny.config_of(sound), tmp_path / "run", _EVERY)
  with pytest.raises(recovery.Diverged, match="the loss is nan at step") as e:
    tiny.train(config, tmp_path / "run", accept_changes=True)
  assert ("after 1 recoveries" in str(e.value)) == bool(trials)
  assert "The last good checkpoint is" in str(e.value)
  assert "ckpt-4" in str(e.value) and "\n" not in str(e.value)
  newest = tf.train.latest_checkpoint(str(tmp_path / "run"))
  assert newest.endswith("ckpt-4")
  assert checkpoint.why_broken(newest) is None


def test_only_training_catches_signals(monkeypatch):
  before, caught = signal.getsignal(signal.SIGTERM), {}

  def build(*_, mode, **__):
    caught[mode] = signal.getsignal(signal.SIGTERM) is not before
    raise errors.Failed("far enough")

  monkeypatch.setattr(tiny.runner, "make_runner", build)
  for mode in ("train", "train_and_eval", "eval", "continuous_eval"):
    with pytest.raises(errors.Failed):
      tiny.runner.run(None, "unused", mode)
  assert caught == {mode: "train" in mode for mode in caught}


def test_a_loss_above_the_bound_counts_too(records, tmp_path):
  layers = _layers(records)
  layers["trainer"] |= {"loss_upper_bound": 0.5, "recovery_begin_steps": 8}
  with pytest.raises(recovery.Diverged, match="at step 8, above"):
    tiny.train(tiny.config_of(layers), tmp_path / "run")


def test_weights_that_are_not_finite_are_neither_saved_nor_used(
  records, tmp_path
):
  config = tiny.config_of(_layers(records))
  runner = tiny.make_runner(config, tmp_path / "run")
  with runner.strategy.scope():
    runner.controller.train(_EVERY)
  weight = runner.trainer.model.trainable_variables[3]
  weight.assign(tf.fill(weight.shape, math.inf))
  runner.trainer.global_step.assign_add(1)
  with pytest.raises(recovery.Diverged, match="is not finite at step 5"):
    runner.controller.save_checkpoint()
  assert not os.path.exists(tmp_path / "run" / "ckpt-5.index")
  items = dict(runner.trainer.checkpoint._trackable_children())
  del items["save_counter"]
  path = tf.train.Checkpoint(**items).write(str(tmp_path / "other"))
  assert "is not finite" in checkpoint.why_broken(path)


@pytest.mark.parametrize(
  "is_async", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_a_full_disk_leaves_the_last_checkpoint(records, tmp_path, is_async):
  config = tiny.config_of(_layers(records))
  undisturbed = tiny.train(config, tmp_path / "undisturbed")
  model_dir = tmp_path / "run"
  tiny.train(config, model_dir, _EVERY)
  size = os.path.getsize(model_dir / "ckpt-4.data-00000-of-00001")
  runner = tiny.make_runner(config, str(model_dir))
  runner.controller._checkpoint_options = tf.train.CheckpointOptions(
    enable_async=is_async
  )
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limits[1]))
  try:
    with pytest.raises(errors.Failed) as e, runner.strategy.scope():
      runner.controller.train(tiny.STEPS)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  text = str(e.value)
  assert f"cannot save a checkpoint in {model_dir}" in text
  assert f"last good checkpoint is {model_dir / 'ckpt-4'}: free" in text
  assert "\n" not in text
  left = {p for p in os.listdir(model_dir) if "ckpt" in p}
  assert {p for p in left if "-4" not in p} == set()
  tiny.assert_same_state(tiny.train(config, model_dir), undisturbed)


def _break(path):
  """Flips a bit in the middle of a file; returns how many records are sound."""
  count = sum(1 for _ in tf.data.TFRecordDataset(path))
  content = bytearray(pathlib.Path(path).read_bytes())
  content[len(content) // 2] ^= 4
  pathlib.Path(path).write_bytes(content)
  return count // 2


def test_a_broken_shard_is_named(records, tmp_path):
  config = tiny.config_of(_layers(records))
  tiny.train(config, tmp_path / "run", _EVERY)
  path = records.replace("*", "1")
  sound = _break(path)
  # A run that is resumed reads the files to find its place.
  with pytest.raises(bad_shards.BadShards) as e:
    tiny.train(config, tmp_path / "run", accept_changes=True)
  assert path in str(e.value) and "records-0" not in str(e.value)
  assert "corrupted record at" in str(e.value)
  assert f"after {sound} good records" in str(e.value)
  assert "leave it out of the data and set accept_changes" in str(e.value)


def test_a_vanished_shard(records, tmp_path):
  layers = _layers(records)
  layers["trainer"] |= {"train_steps": 24}
  config = tiny.config_of(layers)
  runner = tiny.make_runner(config, str(tmp_path / "run"))
  path = records.replace("*", "2")
  with runner.strategy.scope():
    runner.controller.train(_EVERY)
    os.remove(path)
    with pytest.raises(bad_shards.BadShards, match="no longer exists") as e:
      runner.controller.train(24)
  assert path in str(e.value) and "records-0" not in str(e.value)


def test_a_shard_that_vanishes_before_the_input_resumes(records, tmp_path):
  """Its pattern matches the others: they must not be read without a word."""
  config, model_dir = tiny.config_of(_layers(records)), tmp_path / "run"
  tiny.train(config, model_dir, _EVERY)
  runner = tiny.make_runner(config, str(model_dir))
  os.remove(records.replace("*", "2"))
  with runner.strategy.scope():
    with pytest.raises(bad_shards.BadShards, match="2.tfrecord .it no longer"):
      runner.controller.train(2 * _EVERY)
