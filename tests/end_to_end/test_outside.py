"""A method and a rule from outside of the package go through every command."""

import csv
import json
import pathlib

import pytest
import yaml

from tests import tiny
from tests.end_to_end import programs


def _swe(*arguments, plugin=True):
  flags = ["--plugins=tests.methods.outside"] if plugin else []
  return programs.finish(programs.swe(*arguments, *flags))


@pytest.fixture(scope="module", name="folder")
def fixture_folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("outside")
  halfway = {"mode": "swe", "rule": "halfway", "untie_step": None}
  axes = [
    # Units do not matter to it: one run.
    {"method": ["damped"], "units": [1, 2]},
    {"rule": {"halfway": {"task": {"sharing": halfway}}}},
  ]
  programs.write_study(folder, axes)
  return folder


def test_swept_trained_and_reported(folder):
  runs, report = folder / "runs", folder / "report"
  sweep = ["sweep", folder / "study.yaml", f"--output_dir={runs}", "--jobs=2"]
  status, output = _swe(*sweep, plugin=False)
  assert status == 2 and "'damped'" in output and not runs.exists(), output

  status, output = _swe(*sweep)
  assert status == 0, output
  assert {path.name for path in runs.iterdir() if path.is_dir()} == {
    "damped",
    "halfway",
  }
  log = (runs / "halfway" / "log.txt").read_text()
  assert f"untied 1x{tiny.LAYERS} after step {tiny.STEPS // 2}" in log
  results = map(pathlib.Path.read_text, runs.glob("*/result.json"))
  losses = [json.loads(r)["metrics"]["validation_loss"] for r in results]
  assert len(set(losses)) == 2

  status, output = _swe("report", f"--runs={runs}", f"--output_dir={report}")
  assert status == 0, output
  with open(report / "runs.csv", encoding="utf-8") as file:
    rows = {row["method"]: row for row in csv.DictReader(file)}
  assert rows.keys() == {"damped", "swe halfway"}
  assert rows["damped"]["unit"] == rows["damped"]["untie_step"] == ""
  assert float(rows["swe halfway"]["untie_step"]) == tiny.STEPS // 2


@pytest.mark.slow
def test_trained_by_swe_train_and_costed(folder):
  flags = ["--experiment=swe/bert_pretraining"]
  flags += [f"--config_file={folder / 'base.yaml'}"]
  off = "--params_override=runtime.distribution_strategy=off"
  damped = f"{off},task.sharing.mode=damped"
  status, output = _swe(
    "train", *flags, damped, "--mode=train", f"--model_dir={folder / 'model'}"
  )
  assert status == 0, output
  params = yaml.safe_load((folder / "model" / "params.yaml").read_text())
  assert params["task"]["sharing"]["mode"] == "damped"

  cost = folder / "cost.json"
  status, output = _swe("doctor", "cost", *flags, damped, f"--output={cost}")
  assert status == 0, output
  phases = json.loads(cost.read_text())["phases"]
  assert {name: p["steps"] for name, p in phases.items()} == {
    "unshared": tiny.STEPS
  }
  status, output = _swe(
    "doctor", "cost", *flags, f"{off},task.sharing.rule=halfway"
  )
  assert status == 2 and "'halfway'" in output
  status, output = _swe("doctor", "cost", *flags, damped, plugin=False)
  assert status == 2 and "task.sharing.mode ('damped')" in output
