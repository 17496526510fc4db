"""A run is resumed as the same run, or refused; and nothing is lost by it."""

import json
import pathlib
import shutil
from unittest import mock

import gin
import pytest
import tensorflow as tf
import tf_keras
import yaml

from official.core import task_factory
from official.nlp import train as stock_driver
from swe_tf import cli
from swe_tf import errors
from swe_tf import files
from swe_tf import sameness
from swe_tf.analysis import runs as runs_lib
from swe_tf.commands import train as our_driver
from swe_tf.doctor import checks as doctor
from swe_tf.methods import gin_bindings
from swe_tf.training import checkpoint
from swe_tf.training import identity
from tests import tiny

_SHARING = "task.sharing."
_OPTIMIZER = "trainer.optimizer_config."
_EMA = {"trainer": {"optimizer_config": {"ema": {"average_decay": 0.9}}}}


@pytest.fixture(scope="module", name="trained")
def _trained(tmp_path_factory):
  """A run of 12 steps with checkpoints after steps 4, 8 and 12; tau is 7."""
  records = tmp_path_factory.mktemp("records")
  base = tiny.overrides(tiny.write_records(str(records)))
  every = ("checkpoint_interval", "steps_per_loop", "summary_interval")
  base["trainer"] |= dict.fromkeys(every, 4)
  model_dir = tmp_path_factory.mktemp("run") / "model"
  _run(base, model_dir)
  return base, model_dir


def _run(base, model_dir, *overrides, **arguments):
  config = tiny.config_of(base, *overrides)
  tiny.runner.run(
    config,
    str(model_dir),
    "train",
    enable_async_checkpointing=False,
    **arguments,
  )


def _drive(driver, base, model_dir, overrides):
  """Runs a driver as its command does, but in this process."""
  config = model_dir.parent / "config.yaml"
  config.write_text(yaml.safe_dump(base))
  options = our_driver.Options(
    experiment="swe/bert_pretraining",
    mode="train",
    model_dir=str(model_dir),
    config_file=(str(config),),
    params_override=json.dumps(overrides),
    gin_file=("gin/swe.gin",),
    enable_async_checkpointing=False,
  )
  try:
    if driver == "ours":
      our_driver.run(options)
    else:
      with mock.patch.object(stock_driver, "FLAGS", options):
        stock_driver.main(None)
  finally:
    gin.clear_config()
    tf_keras.mixed_precision.set_global_policy("float32")


def _copy(model_dir, path, latest=12):
  """Copies a run as it was at a step."""
  copy = pathlib.Path(shutil.copytree(model_dir, path / "model"))
  for step in range(latest + 4, 13, 4):
    for file in copy.glob(f"ckpt-{step}.*"):
      file.unlink()
  lines = [
    f'{field}: "ckpt-{step}"'
    for step in range(4, latest + 1, 4)
    for field in ("all_model_checkpoint_paths", "model_checkpoint_path")
  ]
  (copy / "checkpoint").write_text("\n".join(lines))
  return copy


def _changes(base, model_dir, step, *overrides, **others):
  run = identity.Identity(tiny.config_of(base, *overrides), **others)
  return run.changes(f"{model_dir}/ckpt-{step}")


# Step of the checkpoint, and what is changed; the first field is named.
_REFUSED = {
  "tau moved to before it": (4, {_SHARING + "untie_step": 2}, "tau"),
  "tau moved after it was passed": (8, {_SHARING + "untie_step": 10}, "tau"),
  "tau of a finished run": (12, {_SHARING + "untie_step": 5}, "tau"),
  "baseline": (12, {_SHARING + "mode": "none"}, _SHARING + "mode"),
  "never tied": (4, {_SHARING + "mode": "equal_init"}, _SHARING + "mode"),
  "units": (4, {_SHARING + "unit_size": 2}, _SHARING + "unit_size"),
  "rule": (4, {_SHARING + "rule": "adaptive"}, _SHARING + "rule"),
  "loops": (4, {_SHARING + "loops": [{"loops": 1}]}, _SHARING + "loops"),
  "optimizer": (4, {_OPTIMIZER + "optimizer.type": "lamb"}, _OPTIMIZER),
  "EMA": (4, {_OPTIMIZER + "ema.average_decay": 0.9}, _OPTIMIZER + "ema"),
  "schedule": (
    4,
    {_OPTIMIZER + "learning_rate.polynomial.initial_learning_rate": 0.1},
    _OPTIMIZER + "learning_rate",
  ),
  "precision": (
    4,
    {"runtime.mixed_precision_dtype": "bfloat16"},
    "runtime.mixed_precision_dtype",
  ),
  "batch": (
    4,
    {"task.train_data.global_batch_size": 16},
    "task.train_data.global_batch_size",
  ),
  "seed": (4, {"task.seed": 3}, "task.seed"),
  "model": (
    4,
    {"task.model.encoder.any.intermediate_size": 8},
    "task.model.encoder.any.intermediate_size",
  ),
  "validation data": (
    4,
    {"task.validation_data.global_batch_size": 4},
    "task.validation_data.global_batch_size",
  ),
}
# What the run ends with is what it would have ended with, bit for bit.
_HARMLESS = {
  "tau still ahead": (4, {_SHARING + "untie_step": 9}),
  "checkpoints": (8, {"trainer.checkpoint_interval": 2}),
  "loops": (8, {"trainer.steps_per_loop": 2, "trainer.max_to_keep": 9}),
  "recovery": (8, {"trainer.recovery_max_trials": 3}),
  "no evaluation": (8, {"task.validation_data.input_path": ""}),
  "logging": (8, {"trainer.validation_summary_subdir": "other"}),
}
_DRIVERS = ["ours", pytest.param("stock", marks=pytest.mark.slow)]


def _merged(changed):
  merged: dict = {}
  for field, value in changed.items():
    *tables, name = field.split(".")
    place = merged
    for table in tables:
      place = place.setdefault(table, {})
    place[name] = value
  return merged


def _content(directory):
  return {p: p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.parametrize("driver", _DRIVERS)
@pytest.mark.parametrize("case", _REFUSED)
def test_a_change_of_the_training_is_refused(trained, tmp_path, case, driver):
  step, changed, wanted = _REFUSED[case]
  base, model_dir = trained
  copy = _copy(model_dir, tmp_path, latest=step)
  before = _content(copy)
  with pytest.raises(errors.UsageError, match="would continue from it") as said:
    _drive(driver, base, copy, _merged(changed))
  assert f": {wanted}" in str(said.value)
  after = _content(copy)
  params = copy / "params.yaml"  # The stock driver writes it first.
  assert yaml.safe_load(after.pop(params)) == yaml.safe_load(before.pop(params))
  assert after == before


@pytest.mark.parametrize("driver", _DRIVERS)
@pytest.mark.parametrize("case", _HARMLESS)
def test_a_harmless_change_does_not_matter(trained, tmp_path, case, driver):
  step, changed = _HARMLESS[case]
  base, straight = trained
  copy = _copy(straight, tmp_path, latest=step)
  if "tau" in case:
    straight = tmp_path / "straight"
    _run(base, straight, _merged(changed))
  _drive(driver, base, copy, _merged(changed))
  tiny.assert_same_checkpoints(copy, straight)
  assert not sameness.accepted(copy)


@pytest.fixture(name="stock")
def _stock(tmp_path):
  """Trains a stock task by what gin binds; input from one batch, again."""
  base = tiny.written(tmp_path / "data")
  config = tiny.config_of(base, {"trainer": tiny.every(2)}, _EMA)
  records = task_factory.get_task(config.task).build_inputs
  batches = records(config.task.train_data).take(1).cache().repeat()

  def train(folder, *stops, binding="untie_step = 5", **changes):
    gin.clear_config()
    gin.parse_config(f"sharing.{binding}")
    tf_keras.utils.set_random_seed(0)  # Stock has no task.seed.
    how = {"method": gin_bindings.share_blocks, "train_dataset": batches}
    model_dir = tmp_path / folder
    return tiny.train(tiny.stock_of(config), model_dir, *stops, **how | changes)

  yield train
  gin.clear_config()


@pytest.mark.parametrize("method", [None, gin_bindings.share_blocks])
def test_a_stock_run_goes_on(stock, method):
  # Model Garden makes the head of this model with the first batch only.
  resumed = stock("resumed", 4, 8, method=method)
  tiny.assert_same_state(resumed, stock("straight", 8, method=method))


@pytest.mark.parametrize(
  "change, field",
  [
    ({"binding": "mode = 'none'"}, _SHARING + "mode"),
    ({"binding": "untie_step = 3"}, "tau"),
    ({"method": None}, "gin.method"),
  ],
)
def test_a_change_of_what_gin_says_of_a_stock_run(stock, change, field):
  stock("run", 4)
  with pytest.raises(errors.UsageError, match=f"continue from it: {field}"):
    stock("run", 6, **change)
  if field != "tau":
    with pytest.raises(errors.UsageError, match="momenta would be lost"):
      stock("run", 6, accept_changes=True, **change)


def test_the_doctor_knows_a_stock_run_and_its_input_starts_over(stock, capsys):
  stock("run", 2)
  trainer = stock("run", 4, train_dataset=None)
  assert "at step 2: it starts over" in capsys.readouterr().out
  config = gin_bindings.describe(trainer.config)
  found = doctor.check_model_dir(config, trainer.task.logging_dir)
  assert "would resume from ckpt-4" in found


@pytest.mark.parametrize(
  "then, now",
  [({}, {"mode": "none"}), ({}, {"untie_step": 0}), ({"mode": "none"}, {})],
)
def test_momenta_are_not_lost_by_an_accepted_change(tmp_path, then, now):
  base = tiny.written(tmp_path / "data", sharing={"untie_step": 4} | then)
  base["trainer"] |= tiny.every(2, train_steps=4)
  model_dir = tmp_path / "model"
  _run(base, model_dir)
  before = _content(model_dir)
  changes = {"task": {"sharing": {"mode": "swe"} | now}}
  with pytest.raises(errors.UsageError, match="task.init_checkpoint"):
    _run(base, model_dir, changes, accept_changes=True)
  assert _content(model_dir) == before


def test_data_workers_and_gin_are_compared(trained, tmp_path):
  base, model_dir = trained
  then = identity.read(f"{model_dir}/ckpt-4")
  data = then["data"]
  given = {"config", "data", "workers", "replicas", "gin", "described"}
  assert set(then) == given
  assert then["workers"] == 1 and len(data["train_data"]) == 16
  others = {k: v for k, v in then.items() if k != "config"}
  assert not _changes(*trained, 4, **others)
  for name, value in {
    "workers": 2,
    "replicas": 2,
    "gin": {"untie_rule": "MyRule"},
    "data": data | {"train_data": "0" * 16},
  }.items():
    ((field, _, _),) = _changes(*trained, 4, **others | {name: value})
    assert field.startswith(name)
  # The same files elsewhere are the same data.
  moved = tmp_path / "moved"
  shutil.copytree(
    pathlib.Path(base["task"]["train_data"]["input_path"]).parent, moved
  )
  path = _merged({"task.train_data.input_path": f"{moved}/records-*.tfrecord"})
  assert not _changes(*trained, 4, path, **others)
  assert _changes(*trained, 4, path)  # Nothing is known about the files.


def test_a_lost_shard_is_refused_and_nothing_is_written(trained, tmp_path):
  base, model_dir = trained
  copy = _copy(model_dir, tmp_path, latest=8)
  before = _content(copy)
  records = pathlib.Path(base["task"]["train_data"]["input_path"])
  shard = records.with_name("records-2.tfrecord")
  lost = shard.rename(tmp_path / shard.name)
  try:
    with pytest.raises(errors.UsageError, match=r"data.train_data was '\w+'"):
      _drive("ours", base, copy, {})
  finally:
    lost.rename(shard)
  assert _content(copy) == before


def test_an_accepted_change_is_recorded_and_shown(trained, tmp_path, capsys):
  base, model_dir = trained
  copy = _copy(model_dir, tmp_path)
  changed = _merged({"trainer.validation_steps": 3}), _merged({"task.seed": 3})
  for _ in range(2):  # Once recorded, it is not recorded again.
    _run(base, copy, *changed, accept_changes=True)
  (entry,) = sameness.accepted(copy)
  assert entry["checkpoint"] == "ckpt-12"
  assert [each[0] for each in entry["changes"]][0] == "task.seed"
  with pytest.raises(doctor.Warned, match="task.seed was 0 and became 3"):
    doctor.check_model_dir(tiny.config_of(base), str(copy))
  config = tiny.config_of(base, _merged({_SHARING + "mode": "none"}))
  with pytest.raises(errors.UsageError, match="task.sharing.mode was 'swe'"):
    doctor.check_model_dir(config, str(copy))
  with pytest.raises(SystemExit, match="1"):
    cli.main(["diff", str(copy), str(model_dir)])
  assert "was changed on the way: task.seed" in capsys.readouterr().out
  found, _ = runs_lib.read([tmp_path])
  assert list(found.status) == [runs_lib.CHANGED]


@pytest.mark.parametrize("state", [None, "", "garbage {", 'x: "y"'])
def test_checkpoints_without_their_state_are_found(
  trained, tmp_path, state, capsys
):
  base, model_dir = trained
  copy = _copy(model_dir, tmp_path, latest=8)
  (copy / "checkpoint").unlink()
  if state is not None:
    (copy / "checkpoint").write_text(state)
  _drive("ours", base, copy, {})
  assert "found ckpt-4, ckpt-8 and resuming" in capsys.readouterr().out
  assert tf.train.latest_checkpoint(str(copy)) == f"{copy}/ckpt-12"
  tiny.assert_same_checkpoints(copy, model_dir)


@pytest.mark.parametrize("step, listed", [(12, True), (12, False), (4, False)])
def test_what_a_kill_leaves_of_a_checkpoint_is_not_used(
  trained, tmp_path, step, listed
):
  """TensorFlow writes the index under its final name, and then the list."""
  base, model_dir = trained
  copy = _copy(model_dir, tmp_path, latest=8)
  if step == 4:  # The first one: there are no others.
    for path in copy.glob("ckpt-*"):
      path.unlink()
  for suffix in (".index", ".data-00000-of-00001"):
    whole = (model_dir / f"ckpt-{step}{suffix}").read_bytes()
    (copy / f"ckpt-{step}{suffix}").write_bytes(whole[: len(whole) // 2])
  if not listed:
    (copy / "checkpoint").unlink()
  _run(base, copy)
  tiny.assert_same_checkpoints(copy, model_dir)


def test_a_state_that_lists_other_directories_deletes_nothing(
  trained, tmp_path
):
  base, model_dir = trained
  copy = _copy(model_dir, tmp_path, latest=8)
  precious = tmp_path / "precious"
  shutil.copytree(model_dir, precious)
  names = [str(precious / "ckpt-4"), "../precious/ckpt-8", "ckpt-8"]
  lines = [f'all_model_checkpoint_paths: "{name}"' for name in names]
  state = "\n".join([f'model_checkpoint_path: "{names[0]}"', *lines])
  (copy / "checkpoint").write_text(state)
  before = sorted(precious.iterdir())
  _run(base, copy, _merged({"trainer.max_to_keep": 1}))
  assert sorted(precious.iterdir()) == before
  assert [p.name for p in copy.glob("ckpt-*.index")] == ["ckpt-12.index"]
  # Without checkpoints of its own there is nothing to resume.
  for path in copy.glob("ckpt-*"):
    path.unlink()
  (copy / "checkpoint").write_text(state)
  with pytest.raises(errors.UsageError, match="names no checkpoint of this"):
    _run(base, copy)


def test_one_process_works_in_a_directory(tmp_path):
  target = tmp_path / "new" / "run"
  with files.lock(target):
    with pytest.raises(errors.UsageError, match=r"process \d+ on "):
      with files.lock(target):
        pass
  assert not target.exists()  # Nothing was made in it.
  with pytest.raises(errors.UsageError, match="patterns"):
    files.check_output_dir(tmp_path / "a[1]", "model_dir")


def test_the_best_checkpoint_does_not_keep_a_run_from_resuming(tmp_path):
  """Model Garden names it otherwise, in a directory of its own."""
  manager = tf.train.CheckpointManager(
    tf.train.Checkpoint(step=tf.Variable(2)), tmp_path, 1, None, "best_ckpt"
  )
  manager.save(2)
  state = (tmp_path / "checkpoint").read_text()
  checkpoint.mend_state(str(tmp_path), write=True)
  assert (tmp_path / "checkpoint").read_text() == state
  (tmp_path / "checkpoint").unlink()
  checkpoint.mend_state(str(tmp_path), write=True)
  assert 'model_checkpoint_path: "best_ckpt-2"' in (
    (tmp_path / "checkpoint").read_text()
  )
