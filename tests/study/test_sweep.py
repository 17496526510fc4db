"""`swe sweep` with real runs: planned, run, killed, called again."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from swe_tf import errors
from swe_tf.runs import scalars as curves
from swe_tf.study import configs
from swe_tf.study import plan
from swe_tf.study import run_process
from swe_tf.study import sweep as sweep_lib
from tests import tiny

_PATIENCE = 300


@pytest.fixture(scope="module", name="study")
def _study(tmp_path_factory):
  """A study of a tiny baseline and a tiny SWE run."""
  folder = tmp_path_factory.mktemp("study")
  (folder / "records").mkdir()
  base = tiny.overrides(tiny.write_records(str(folder / "records")))
  (folder / "base.yaml").write_text(yaml.safe_dump(base))
  path = folder / "study.yaml"
  path.write_text(
    yaml.safe_dump(
      {
        "experiment": "swe/bert_pretraining",
        "config_files": ["base.yaml"],
        "overrides": {"runtime": {"distribution_strategy": "off"}},
        "axes": {"method": ["baseline", "swe"], "seed": [1]},
      }
    )
  )
  return path


def _sweep(study, output_dir, *arguments):
  return subprocess.Popen(
    [
      sys.executable,
      "-m",
      "swe_tf.cli",
      "sweep",
      str(study),
      f"--output_dir={output_dir}",
      *arguments,
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    env=dict(os.environ, COLUMNS="120"),
  )


def _finish(process):
  output, _ = process.communicate(timeout=_PATIENCE)
  return process.returncode, output


def _planned(path):
  study = plan.read_study(str(path))
  runs = []
  for run in study.runs:
    config = configs.make_config(study, run)
    runs.append(
      sweep_lib.PlannedRun(
        run=run,
        config=config.as_dict(),
        steps=config.trainer.train_steps,
        tokens=configs.tokens(config),
        flops=configs.training_flops(config),
      )
    )
  return study, runs


def test_configs_follow_the_axes(study):
  _, (baseline, swe) = _planned(study)
  assert baseline.config["task"]["sharing"]["mode"] == "none"
  assert swe.config["task"]["sharing"]["mode"] == "swe"
  assert swe.config["task"]["seed"] == 1
  assert swe.config["task"]["train_data"]["seed"] == 1
  assert swe.steps == tiny.STEPS
  assert swe.tokens == tiny.STEPS * 8 * tiny.LENGTH


def test_configs_that_cannot_be_run_are_refused(study):
  known = plan.read_study(str(study))
  (run,) = plan.plan_runs({"method": ["swe"], "units": ["2x12"]})
  with pytest.raises(errors.UsageError, match="are 24 layers, but .* has 2"):
    configs.make_config(known, run)
  (run,) = plan.plan_runs({"seed": [0]})
  with pytest.raises(errors.UsageError, match="run seed0: .*no_such"):
    configs.make_config(known, run, "task.no_such=1")


def test_entropy_is_that_of_the_masked_tokens(study):
  known, _ = _planned(study)
  config = configs.make_config(known, known.runs[0])
  measured = configs.unigram_entropy(config)
  # 3 uniform tokens of 45 in each of 16 sequences: near log(45), not above.
  assert np.log(45) - 0.6 < measured < np.log(45)


def test_runs_of_another_configuration_are_refused(study, tmp_path):
  known, runs = _planned(study)
  folder = tmp_path / runs[0].name
  folder.mkdir()
  other = json.loads(json.dumps(runs[0].config))
  other["trainer"]["train_steps"] = 99
  (folder / "overrides.yaml").write_text(yaml.safe_dump(other))
  with pytest.raises(
    errors.UsageError, match="has trainer.train_steps 99, but now it is 12"
  ):
    sweep_lib.Sweep(known.experiment, known.metrics, runs, tmp_path)


def test_a_run_that_is_at_work_is_left_alone(tmp_path):
  with open(tmp_path / "run.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(errors.UsageError, match="another process"):
      run_process.RunProcess(tmp_path, "swe/x", tmp_path / "none.yaml")


def test_cores_are_divided(monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
  cores = sweep_lib._cores_of  # pylint: disable=protected-access
  assert [cores(slot, 2) for slot in range(2)] == [[0, 1], [2, 3]]
  assert [cores(slot, 8) for slot in (0, 5)] == [[0], [1]]
  assert cores(0, 1) == []


def test_a_study_runs_and_its_results_are_those_of_the_event_files(
  study, tmp_path
):
  status, output = _finish(_sweep(study, tmp_path / "runs", "--dry_run"))
  assert status == 0, output
  assert "baseline-seed1" in output and "time unknown" in output
  assert not (tmp_path / "runs").exists()
  status, output = _finish(_sweep(study, tmp_path / "runs", "--jobs=2"))
  assert status == 0, output
  for name in ("baseline-seed1", "swe-seed1"):
    folder = tmp_path / "runs" / name
    result = json.loads((folder / "result.json").read_text())
    events = curves.read_scalars(str(folder / "validation"))
    assert result["steps"] == tiny.STEPS
    assert result["cpu_seconds"] > 1
    for metric, value in result["metrics"].items():
      assert events[metric][-1] == (tiny.STEPS, value)
    assert f"{result['metrics']['validation_loss']:.4f}" in output
  together = json.loads((tmp_path / "runs" / "results.json").read_text())
  assert [run["name"] for run in together] == ["baseline-seed1", "swe-seed1"]
  assert together[1]["metrics"] == result["metrics"]
  config = yaml.unsafe_load(
    (tmp_path / "runs" / "swe-seed1" / "params.yaml").read_text()
  )
  assert config["task"]["sharing"]["untie_step"] == tiny.TAU
  status, output = _finish(_sweep(study, tmp_path / "runs", "--dry_run"))
  assert output.count("finished") >= 2 and "left: 0.00e+00 FLOPs" in output


@pytest.mark.slow
def test_a_killed_sweep_goes_on(study, tmp_path):
  runs = tmp_path / "runs"
  first = _sweep(study, runs)
  deadline = time.time() + _PATIENCE
  finished = runs / "baseline-seed1" / "result.json"
  at_work = runs / "swe-seed1" / "log.txt"
  while not (at_work.exists() and at_work.stat().st_size):
    assert first.poll() is None and time.time() < deadline
    time.sleep(0.2)
  first.send_signal(signal.SIGKILL)
  first.wait()
  _signal_training(runs / "swe-seed1", "STOP")  # Or it may be done too soon.
  stamp = finished.stat().st_mtime_ns
  status, output = _finish(_sweep(study, runs))
  assert status != 0 and "another process is at this run" in output
  _signal_training(runs / "swe-seed1", "KILL")
  status, output = _finish(_sweep(study, runs))
  assert status == 0, output
  assert "finished before" in output
  assert finished.stat().st_mtime_ns == stamp
  assert (runs / "swe-seed1" / "result.json").exists()


def _signal_training(directory: pathlib.Path, name: str) -> None:
  subprocess.run(
    ["pkill", f"-{name}", "-f", f"model_dir={directory}"], check=True
  )
  time.sleep(1)
