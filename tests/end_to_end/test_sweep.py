"""`swe sweep` in processes: printed commands, and a sweep of its own."""

import json
import shlex
import subprocess
import sys

import pytest

from tests.end_to_end import studies

_PATIENCE = 300


def _finish(process):
  output, _ = process.communicate(timeout=_PATIENCE)
  return process.returncode, output


@pytest.mark.slow
def test_printed_commands_run_and_a_sweep_collects_their_results(tmp_path):
  study = studies.write(tmp_path, {"method": ["baseline", "swe"], "seed": [1]})
  dry = studies.sweep(study, tmp_path / "runs", "--dry_run")
  status, output = _finish(dry)
  assert status == 0 and "left: " in output, output
  assert not (tmp_path / "runs").exists()
  status, output = _finish(
    studies.sweep(study, tmp_path / "runs", "--print_commands")
  )
  lines = [line for line in output.splitlines() if line.startswith("swe ")]
  assert status == 0 and len(lines) == 2, output
  for line in lines:
    _, *arguments = shlex.split(line)
    subprocess.run(
      [sys.executable, "-m", "swe_tf.cli", *arguments],
      check=True,
      timeout=_PATIENCE,
    )
  status, output = _finish(studies.sweep(study, tmp_path / "runs"))
  assert status == 0, output
  status, output = _finish(studies.sweep(study, tmp_path / "here", "--jobs=2"))
  assert status == 0, output
  for name in ("baseline-seed1", "swe-seed1"):
    studies.assert_same_weights(
      tmp_path / "runs" / name, tmp_path / "here" / name
    )
    results = [
      json.loads((tmp_path / folder / name / "result.json").read_text())
      for folder in ("runs", "here")
    ]
    assert results[0]["metrics"] == results[1]["metrics"]
    loss = results[1]["metrics"]["validation_loss"]
    assert f"{loss:.4f}" in output and results[1]["cpu_seconds"] > 1
  status, output = _finish(studies.sweep(study, tmp_path / "here", "--dry_run"))
  assert output.count("finished") >= 2 and "left: 0.00e+00 FLOPs" in output
