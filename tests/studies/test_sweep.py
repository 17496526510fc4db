"""`swe sweep` with real runs: planned, run, killed, called again."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from swe_tf import errors
from swe_tf.analysis import scalars as curves
from swe_tf.configs import cost
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import sweep as sweep_lib
from tests import tiny
from tests.studies import hparams_view

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


def test_configs_follow_the_axes(study):
  configs = experiments.make_configs(study_file.read_study(str(study)))
  baseline, swe = configs.values()
  assert baseline.task.sharing.mode == "none"
  assert swe.task.sharing.mode == "swe"
  assert swe.task.seed == swe.task.train_data.seed == 1
  assert swe.trainer.train_steps == tiny.STEPS
  assert cost.tokens(swe) == tiny.STEPS * 8 * tiny.LENGTH


def test_configs_that_cannot_be_run_are_refused(study):
  known = study_file.read_study(str(study))
  (run,) = study_file.plan_runs({"method": ["swe"], "units": ["2x12"]})
  with pytest.raises(errors.UsageError, match="are 24 layers, but .* has 2"):
    experiments.make_config(known, run)
  (run,) = study_file.plan_runs({"seed": [0]})
  with pytest.raises(errors.UsageError, match="run seed0: .*no_such"):
    experiments.make_config(known, run, "task.no_such=1")


def test_entropy_is_that_of_the_masked_tokens(study):
  known = study_file.read_study(str(study))
  config = experiments.make_config(known, known.runs[0])
  measured = experiments.unigram_entropy(config)
  # 3 uniform tokens of 45 in each of 16 sequences: near log(45), not above.
  assert np.log(45) - 0.6 < measured < np.log(45)


def test_parameters_that_are_newer_than_a_run_do_not_make_it_another(
  study, tmp_path
):
  known = study_file.read_study(str(study))
  runs = experiments.make_runs(known, experiments.make_configs(known))
  earlier = json.loads(json.dumps(runs[0].config))
  del earlier["task"]["sharing"]["unit_size"]
  path = tmp_path / runs[0].name / "overrides.yaml"
  path.parent.mkdir()

  def check():
    path.write_text(yaml.safe_dump(earlier))
    sweep_lib.Sweep(
      runs,
      tmp_path,
      read_config=lambda path: experiments.read_config(
        known.experiment, path
      ).as_dict(),
    )

  check()
  earlier["trainer"]["train_steps"] = 99
  with pytest.raises(
    errors.UsageError, match="trainer.train_steps 99, but now it is 12"
  ):
    check()


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
  _, groups = hparams_view.read(tmp_path / "runs")
  shown = {
    hparams_view.value_of(group.hparams["method"]): {
      metric.name.tag: metric.value for metric in group.metric_values
    }
    for group in groups
  }
  assert shown == {
    run["axes"]["method"]: pytest.approx(run["metrics"]) for run in together
  }
  status, output = _finish(_sweep(study, tmp_path / "runs", "--dry_run"))
  assert output.count("finished") >= 2 and "left: 0.00e+00 FLOPs" in output


@pytest.mark.slow
def test_a_killed_sweep_goes_on(study, tmp_path):
  runs = tmp_path / "runs"
  first = _sweep(study, runs)
  deadline = time.time() + _PATIENCE
  finished = runs / "baseline-seed1" / "result.json"
  at_work = runs / "swe-seed1" / "checkpoint"
  while not at_work.exists():
    assert first.poll() is None and time.time() < deadline
    time.sleep(0.01)
  worker = int((runs / "swe-seed1" / "run.lock").read_text())
  os.kill(worker, signal.SIGSTOP)  # Or it may be done too soon.
  first.send_signal(signal.SIGKILL)
  first.wait()
  stamp = finished.stat().st_mtime_ns
  status, output = _finish(_sweep(study, runs))
  assert status == 1 and "another process is working on this run" in output
  os.kill(worker, signal.SIGKILL)
  status, output = _finish(_sweep(study, runs))
  assert status == 0, output
  assert "finished before" in output
  assert finished.stat().st_mtime_ns == stamp
  assert (
    "restored from checkpoint" in (runs / "swe-seed1" / "log.txt").read_text()
  )
  assert (runs / "swe-seed1" / "result.json").exists()
  assert (runs / "results.json").exists()
