"""What an older version wrote is read, and its runs end as they would have.

`tests/legacy/make_fixtures.py` says what made the files, and with which commit.
Floats are compared bit for bit where the machine rounds like the one that made
them, and roughly elsewhere.
"""

import csv
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import yaml

from official.core import task_factory
from official.modeling import performance
from swe_tf.data.prepare import manifest
from tests import tiny
from tests.legacy import machine

_LEGACY = pathlib.Path(__file__).parent / "legacy"
# Stands in the files for the folder that they are in.
_PLACEHOLDER = "LEGACY"
_STOPPED = sorted((_LEGACY / "pretraining").glob("*/stopped_*"))
_IN_EVERY_RUN = ("baseline-5", "swe-5", "net2net-5")
# How often the run was saved, what the checkpoint is made of, and constants.
_NOT_WEIGHTS = ("save_counter", "_CHECKPOINTABLE_OBJECT_GRAPH", "optimizer/")
_FINETUNE = (
  "finetune",
  "--task=SST-2",
  "--checkpoint=study/runs/swe-seed1",
  "--data_dir=prepared/SST-2",
  "--epochs=3",
  "--params_override=task.train_data.global_batch_size=8",
)
# How many of the tensors are how close on another machine. With other matrix
# products (TF_ENABLE_ONEDNN_OPTS=0), 0.95 of them were within 1e-5.
_MOST, _ROUGHLY = 0.9, 0.01


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
  """A copy of all fixtures but the runs of pre-training."""
  folder = tmp_path.resolve() / "copy"
  for name in ("inputs", "prepared", "study", "finetune", "report"):
    shutil.copytree(_LEGACY / name, folder / name)
  for suffix in ("json", "yaml"):
    for path in folder.rglob(f"*.{suffix}"):
      text = path.read_text()
      if _PLACEHOLDER in text:
        path.write_text(text.replace(_PLACEHOLDER, str(folder)))
  return folder


@pytest.fixture(name="precision")
def fixture_precision():
  """Sets the global precision, until the test has ended."""
  yield performance.set_mixed_precision_policy
  tf_keras.mixed_precision.set_global_policy("float32")


def _swe(folder, *arguments):
  """Runs a command in a folder; returns what it printed."""
  done = subprocess.run(
    [sys.executable, "-m", "swe_tf.cli", *arguments],
    cwd=folder,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
  )
  assert done.returncode == 0, done.stdout[-3000:]
  return done.stdout


def _contents(folder):
  return {
    str(path.relative_to(folder)): path.read_bytes()
    for path in sorted(folder.rglob("*"))
    if path.is_file()
  }


def _rounds_alike():
  made_on = json.loads((_LEGACY / "machine.json").read_text())
  return made_on == machine.describe()


def _is_close(ours, theirs):
  ours, theirs = np.float64(ours), np.float64(theirs)
  error = np.linalg.norm(ours - theirs)
  return error <= _ROUGHLY * np.linalg.norm(theirs)


def _check_state(ours, path):
  """Compares tensors by name with those that the older version left."""
  theirs = dict(np.load(path))
  # Later versions count the batches that a recovery has skipped.
  ours = {k: v for k, v in ours.items() if not k.startswith("skipped_batches")}
  assert ours.keys() == theirs.keys()
  shapes = [k for k in ours if ours[k].shape != theirs[k].shape]
  assert not shapes, f"other shapes: {shapes}"
  differ = [k for k in ours if not np.array_equal(ours[k], theirs[k])]
  if not _rounds_alike():
    # Not all: the gradients of the keys' biases are nothing but rounding, and
    # Adam makes full steps of them.
    close = [k for k in ours if _is_close(ours[k], theirs[k])]
    assert len(close) >= _MOST * len(ours), f"{len(close)} of {len(ours)}"
  else:
    assert not differ, f"{len(differ)} of {len(ours)} tensors differ: {differ}"


def _read_config(directory, input_path):
  """Returns the config of a run of pre-training, with the data elsewhere."""
  content = yaml.safe_load((directory / "params.yaml").read_text())
  for name in ("train_data", "validation_data"):
    content["task"][name]["input_path"] = input_path
  return tiny.config_of(content)


def _parameter(directory):
  name = f"{directory.parent.name}-{directory.name.removeprefix('stopped_')}"
  marks = [] if name in _IN_EVERY_RUN else [pytest.mark.slow]
  return pytest.param(directory, id=name, marks=marks)


@pytest.mark.parametrize("stopped", map(_parameter, _STOPPED))
def test_a_stopped_run_ends_as_before(stopped, tmp_path, precision):
  directory = shutil.copytree(stopped, tmp_path / "run")
  config = _read_config(
    directory, str(_LEGACY / "records" / "records-*.tfrecord")
  )
  precision(config.runtime.mixed_precision_dtype or "float32")
  runner = tiny.make_runner(config, str(directory))
  step = int(runner.trainer.global_step.numpy())
  assert stopped.name == f"stopped_{step}", "not restored"
  runner.controller.train(config.trainer.train_steps)
  _check_state(tiny.final_state(runner.trainer), stopped.parent / "final.npz")


def _weights_and_slots(directory):
  reader = tf.train.load_checkpoint(str(directory))
  return {
    name: reader.get_tensor(name)
    for name in reader.get_variable_to_shape_map()
    if not name.startswith(_NOT_WEIGHTS)
  }


def _read_table(path):
  with open(path, encoding="utf-8") as file:
    return list(csv.DictReader(file))


def test_the_report_says_what_it_said(folder):
  _swe(folder, "report", "--runs=study/runs", "--output_dir=new")
  tables = sorted((folder / "report").glob("*.csv"))
  assert tables
  for path in tables:
    theirs, ours = map(_read_table, (path, folder / "new" / path.name))
    assert len(ours) == len(theirs), path.name
    for our_row, their_row in zip(ours, theirs):
      if our_row.get("score", "").endswith(" (dev)"):
        # It stood beside the paper's score for the test set.
        assert our_row["score"] == f"{their_row['score']} (dev)"
        theirs_too = ("measured_mean", "gain_mean", "method")
        their_row = {name: their_row[name] for name in theirs_too}
      # There may be new columns.
      assert our_row | their_row == our_row, path.name


def test_prepared_text_is_checked_and_read(folder):
  prepared = folder / "prepared" / "pretraining"
  before = _contents(prepared)
  output = _swe(
    folder,
    "prepare",
    "pretraining",
    "--input=inputs/corpus.txt",
    "--vocab=inputs/vocab.txt",
    "--output_dir=prepared/pretraining",
    "--seq_length=16",
    "--num_shards=2",
    "--masking=whole_word",
  )
  assert "nothing to do" in output
  assert _contents(prepared) == before
  config = _read_config(
    folder / "study" / "runs" / "swe-seed1", str(prepared / "*.tfrecord")
  )
  task = task_factory.get_task(config.task)
  task.check_data()
  size = json.loads((prepared / "manifest.json").read_text())["examples"]
  batch = config.task.validation_data.global_batch_size
  found = _count_examples(task, config.task.validation_data)
  assert found == size // batch * batch  # The rest is dropped.


def _count_examples(task, data, take=-1):
  dataset = task.build_inputs(data).take(take)
  batches = [tf.nest.flatten(batch)[0] for batch in dataset]
  return sum(int(batch.shape[0]) for batch in batches)


@pytest.mark.parametrize(
  "experiment, name", [("swe/glue", "SST-2"), ("swe/squad", "squad")]
)
def test_prepared_tasks_are_read(experiment, name):
  data_dir = _LEGACY / "prepared" / name
  meta = json.loads((data_dir / "meta.json").read_text())
  config = tiny.config_of(
    {
      "task": {
        "data_dir": str(data_dir),
        "train_data": {"global_batch_size": 4},
        "validation_data": {"global_batch_size": 4, "drop_remainder": False},
      }
    },
    experiment=experiment,
  )
  task = task_factory.get_task(config.task)
  assert _count_examples(task, config.task.train_data, take=2) == 8
  assert (
    _count_examples(task, config.task.validation_data)
    == (meta["eval_data_size"])
  )


def test_a_run_of_the_study_can_be_fine_tuned(folder, monkeypatch):
  monkeypatch.chdir(folder)  # Paths in the run's params.yaml are relative.
  config = tiny.config_of(
    {
      "task": {
        "data_dir": "prepared/SST-2",
        "init_checkpoint": "study/runs/swe-seed1",
      }
    },
    experiment="swe/glue",
  )
  task = task_factory.get_task(config.task)
  model = task.build_model()
  task.initialize(model)
  saved = {
    value.tobytes()
    for value in _weights_and_slots("study/runs/swe-seed1").values()
  }
  encoder = model.checkpoint_items["encoder"].trainable_variables
  assert encoder
  assert all(v.numpy().tobytes() in saved for v in encoder)


def _read_records(path):
  # The bytes of a record are not always the same: features have no order.
  return [
    tf.train.Example.FromString(record.numpy())
    for record in tf.data.TFRecordDataset(str(path))
  ]


@pytest.mark.slow
def test_the_same_text_is_prepared_alike(folder):
  common = ("--vocab=inputs/vocab.txt", "--max_seq_length=32")
  _swe(
    folder,
    "prepare",
    "glue",
    "--task=SST-2",
    "--input_dir=inputs/SST-2",
    "--output_dir=new/SST-2",
    *common,
  )
  for split in ("train", "eval"):
    _swe(
      folder,
      "prepare",
      "squad",
      "--input=inputs/squad.json",
      "--version=1.1",
      "--output_dir=new/squad",
      f"--split={split}",
      "--max_query_length=12",
      "--doc_stride=8",
      *common,
    )
  _swe(
    folder,
    "prepare",
    "pretraining",
    "--input=inputs/corpus.txt",
    "--vocab=inputs/vocab.txt",
    "--output_dir=new/pretraining",
    "--seq_length=16",
    "--num_shards=2",
    "--masking=whole_word",
  )
  for path in sorted((folder / "prepared").rglob("*")):
    name = str(path.relative_to(folder / "prepared"))
    now = folder / "new" / name
    if path.name in ("manifest.json", "meta.json"):
      # There are two formats, and one reader.
      theirs, ours = (manifest.load(each.parent) for each in (path, now))
      assert ours == theirs, name
    elif name.endswith("record"):
      assert _read_records(now) == _read_records(path), name
    elif path.is_file():
      assert now.read_bytes() == path.read_bytes(), name


@pytest.mark.slow
def test_the_doctor_finds_a_stopped_run_sound(tmp_path):
  directory = shutil.copytree(
    _LEGACY / "pretraining" / "swe" / "stopped_5", tmp_path / "run"
  )
  # Paths in params.yaml are relative to the fixtures.
  output = _swe(
    _LEGACY,
    "doctor",
    "--experiment=swe/bert_pretraining",
    f"--model_dir={directory}",
    f"--config_file={directory}/params.yaml",
  )
  assert "would resume from ckpt-5" in output
