"""Real processes on loopback: the same training as in one process."""

import os
import random
import re
import time

import numpy as np
import pytest
import yaml

from benchmarks import fault_process
from tests import tiny
from tests.data import corpus
from tests.end_to_end import multi_worker
from tests.end_to_end import programs
from tests.studies.finetune import samples

_PATIENCE = 240


def _commands(folder, rule, num_workers):
  module = "tests.end_to_end.multi_worker"
  return [
    [module, str(folder / "model"), str(folder / f"{index}.npz"), rule]
    for index in range(num_workers)
  ]


def _start(commands):
  """Starts a worker for each command; one without a cluster if alone."""
  workers = []
  for command, cluster in zip(commands, fault_process.clusters(len(commands))):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="2")
    if cluster:
      env["TF_CONFIG"] = cluster
    workers.append(programs.start(*command, env=env))
  return workers


def _kill(workers):
  for worker in workers:
    worker.kill()
    worker.wait()


def _finish(workers, status=0):
  """Waits for all; a worker that hangs ends the test, not the machine.

  Returns what each of them printed.
  """
  end, outputs = time.time() + _PATIENCE, []
  try:
    for worker in workers:
      output, _ = worker.communicate(timeout=max(1, end - time.time()))
      assert worker.returncode == status, output[-3000:]
      outputs.append(output)
  finally:
    _kill(workers)
  return outputs


def _train(folder, num_workers, rule):
  """Returns what each worker has in the end."""
  folder.mkdir(exist_ok=True)
  _finish(_start(_commands(folder, rule, num_workers)))
  return [dict(np.load(folder / f"{i}.npz")) for i in range(num_workers)]


@pytest.mark.slow
@pytest.mark.parametrize(
  "num_workers, rule",
  [(2, "tau"), (2, "cosine"), (4, "cosine"), (2, "net2net"), (2, "stacking")],
)
def test_workers_train_as_one_process_does(tmp_path, num_workers, rule):
  [alone] = _train(tmp_path / "alone", 1, "tau" if rule == "cosine" else rule)
  workers = _train(tmp_path / "cluster", num_workers, rule)
  for worker in workers:
    for name, value in workers[0].items():
      np.testing.assert_array_equal(worker[name], value, err_msg=name)
  if rule != "cosine":
    _, growth = multi_worker.GROWTH.get(rule, (0, ()))
    assert workers[0]["changed"] == (len(growth) or tiny.TAU)
    assert workers[0].keys() == alone.keys()
    for name, value in workers[0].items():
      np.testing.assert_allclose(value, alone[name], rtol=2e-4, atol=2e-6)
  else:
    # Every worker has gradients of its own, and all see the same cosine.
    assert 0 < workers[0]["changed"] < tiny.STEPS
    assert np.isfinite(workers[0]["seen"]).all()


def _kill_after_a_checkpoint(commands, model_dir, rng):
  """Starts workers, and kills them when they have saved once more."""
  workers = _start(commands)
  saved = lambda: len(list(model_dir.glob("ckpt-*.index")))
  before = saved()
  try:
    programs.wait_until(lambda: saved() > before, *workers)
    rng.choice(workers).kill()  # What runs the cluster then stops the others.
  finally:
    _kill(workers)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["cosine", *multi_worker.GROWTH])
def test_a_worker_killed_and_the_job_restarted_ends_with_the_same_weights(
  tmp_path, rule
):
  straight, _ = _train(tmp_path / "straight", 2, rule)
  folder = tmp_path / "killed"
  rng = random.Random(1)
  for _ in range(2):
    commands = _commands(folder, rule, 2)
    _kill_after_a_checkpoint(commands, folder / "model", rng)
  first, _ = _train(folder, 2, rule)
  for name in straight:
    np.testing.assert_array_equal(first[name], straight[name], err_msg=name)


def _swe_train(model_dir, config_file, experiment, mode):
  """Returns the command of each of two workers."""
  command = [
    *("swe_tf.train", f"--experiment={experiment}", f"--mode={mode}"),
    *(f"--model_dir={model_dir}", f"--config_file={config_file}"),
  ]
  return [command, command]


def _write_config(kind, folder):
  """Writes the data and the config of a tiny run; returns its experiment."""
  config = tiny.overrides(tiny.write_records(str(folder)))
  experiment = "swe/bert_pretraining"
  if kind == "text":
    experiment = "swe/bert_pretraining_text"
    vocab = corpus.write(folder, a=corpus.text(300), b=corpus.text(300, 1))
    text = {"input_path": f"{folder}/?.txt", "vocab_file_path": vocab}
    for data in ("train_data", "validation_data"):
      config["task"][data] |= text
    config["task"]["model"]["encoder"]["any"]["vocab_size"] = 200
  elif kind == "init_checkpoint":
    runner = tiny.make_runner(tiny.config_of(config), str(folder / "first"))
    runner.checkpoint_manager.save()
    config["task"]["init_checkpoint"] = str(folder / "first")
  elif kind != "records":
    experiment = "swe/squad" if "squad" in kind else "swe/glue"
    data_dir = samples.write_data(kind, folder, count=32, max_seq_length=64)
    encoder = samples.write_encoder(
      folder / "encoder", data_dir, **samples.SMALL
    )
    config = {
      "task": {
        "data_dir": data_dir,
        "init_checkpoint": encoder,
        "train_data": {"global_batch_size": 8},
        "validation_data": {"global_batch_size": 8},
      },
      "trainer": {"train_steps": 6},
    }
  config["runtime"] = {"distribution_strategy": "multi_worker_mirrored"}
  config["trainer"] |= dict.fromkeys(
    ("steps_per_loop", "summary_interval", "checkpoint_interval"), 1
  )
  (folder / "config.yaml").write_text(yaml.safe_dump(config))
  return experiment


@pytest.mark.slow
@pytest.mark.parametrize(
  "kind", ["records", "text", "init_checkpoint", "SST-2", "squad_v1.1"]
)
def test_every_experiment_starts_on_two_workers_and_restarts(tmp_path, kind):
  experiment = _write_config(kind, tmp_path)

  def commands(name):
    paths = tmp_path / name, tmp_path / "config.yaml"
    return _swe_train(*paths, experiment, "train_and_eval")

  _finish(_start(commands("straight")))
  _kill_after_a_checkpoint(
    commands("killed"), tmp_path / "killed", random.Random(1)
  )
  _finish(_start(commands("killed")))
  tiny.assert_same_checkpoints(tmp_path / "killed", tmp_path / "straight")


@pytest.mark.slow
def test_a_signal_to_one_worker_makes_all_save_and_exit(tmp_path):
  config = tiny.written(tmp_path)
  config["runtime"] = {"distribution_strategy": "multi_worker_mirrored"}
  config["trainer"] |= {
    "train_steps": 4000,
    "checkpoint_interval": 4000,
    "preemption_on_demand_checkpoint": True,
  }
  path, model_dir = tmp_path / "config.yaml", tmp_path / "model"
  path.write_text(yaml.safe_dump(config))
  workers = _start(_swe_train(model_dir, path, "swe/bert_pretraining", "train"))
  try:
    programs.wait_until(lambda: list(model_dir.glob("train/events*")), *workers)
    workers[1].terminate()
    outputs = _finish(workers, status=75)
  finally:
    _kill(workers)
  said = r"all workers saved a checkpoint at step (\d+)"
  (step,) = {re.search(said, output)[1] for output in outputs}
  assert (model_dir / f"ckpt-{step}.index").exists()
