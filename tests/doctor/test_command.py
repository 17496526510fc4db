"""`swe doctor` as it is called."""

import json
import pathlib
import subprocess
import sys

import pytest
import yaml

from tests import tiny

_ROOT = pathlib.Path(__file__).parents[2]


def _doctor(*arguments):
  done = subprocess.run(
    [sys.executable, "-m", "swe_tf.cli", "doctor", *arguments],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    check=False,
  )
  return done.returncode, done.stdout, done.stderr


@pytest.fixture(name="flags")
def fixture_flags(tmp_path):
  path = tmp_path / "tiny.yaml"
  path.write_text(
    yaml.safe_dump(tiny.overrides(tiny.write_records(str(tmp_path))))
  )
  return ["--experiment=swe/bert_pretraining", f"--config_file={path}"]


def test_a_sound_run_and_all_faults_of_another(flags, tmp_path):
  status, output, _ = _doctor(*flags, f"--model_dir={tmp_path}/new")
  assert status == 0, output
  assert f"{tiny.TAU} steps shared" in output
  assert "\nfault" not in output
  assert not (tmp_path / "new").exists()

  status, output, _ = _doctor(
    *flags,
    "--params_override=task.train_data.input_path=/nowhere,"
    "runtime.num_gpus=99,trainer.optimizer_config.learning_rate.polynomial"
    ".decay_steps=5",
  )
  faults = [line for line in output.splitlines() if line.startswith("fault")]
  assert status == 1
  assert len(faults) == 3
  for fault, words in zip(faults, ("num_gpus", "/nowhere", "decay")):
    assert words in fault


def test_cost_is_printed_and_written(flags, tmp_path):
  status, output, _ = _doctor("cost", *flags, f"--output={tmp_path}/cost.json")
  assert status == 0
  cost = json.loads((tmp_path / "cost.json").read_text())
  assert f"{cost['parameters']:,}" in output
  assert cost["phases"]["shared"]["steps"] == tiny.TAU


@pytest.mark.parametrize(
  "arguments, message",
  [
    (["--experiment=swe/nothing"], "nothing"),
    (
      ["--experiment=swe/bert_pretraining", "--params_override=task.taks=1"],
      "taks",
    ),
  ],
)
def test_what_is_no_experiment_is_one_line(arguments, message):
  status, _, errors = _doctor(*arguments)
  assert status == 1
  assert errors.splitlines()[-1].startswith("error: ")
  assert message in errors.splitlines()[-1]
