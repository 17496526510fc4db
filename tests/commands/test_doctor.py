"""`swe doctor`, its cost and TPU: what they print, and the exit status."""

import json
import pathlib
import re
import subprocess

import pytest
import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import doctor
from swe_tf.commands import doctor_cost
from swe_tf.commands import doctor_tpu
from swe_tf.doctor.tpu import depths
from swe_tf.doctor.tpu import programs
from tests import tiny
from tests.studies.finetune import samples


@pytest.fixture(name="flags")
def fixture_flags(tmp_path):
  path = tmp_path / "tiny.yaml"
  path.write_text(
    yaml.safe_dump(tiny.overrides(tiny.write_records(str(tmp_path))))
  )
  return {"experiment": "swe/bert_pretraining", "config_file": (str(path),)}


def test_a_sound_run_and_all_faults_of_another(flags, tmp_path, capsys):
  model_dir = tmp_path / "new"
  doctor.run(doctor.Options(**flags, model_dir=str(model_dir)))
  output = capsys.readouterr().out
  assert f"{tiny.TAU} steps shared" in output
  assert "\nfault" not in output
  assert not model_dir.exists()

  overrides = (
    "task.train_data.input_path=/nowhere,task.validation_data.input_path=/no,"
    "trainer.optimizer_config.learning_rate.polynomial.decay_steps=5,"
    "runtime.num_gpus=99"
  )
  words = ["num_gpus", "/nowhere does", "/no does", "decay"]
  _check_faults(flags, overrides, words, capsys, errors.Failed)
  # Those of the configuration come first, and are no end of it.
  overrides += (
    ",task.sharing.unitsize=1,trainer.optimizer_config.optimizer.type=swe2,"
    "task.sharing.unit_size=3,task.sharing.untie_step=99,task.micro_batches=0"
  )
  wrong = ["unitsize", "swe2", "(99)", "micro_batches", "unit_size"]
  _check_faults(flags, overrides, wrong + words, capsys, errors.UsageError)


def _check_faults(flags, overrides, words, capsys, kind):
  options = doctor.Options(**flags, params_override=overrides)
  with pytest.raises(kind, match="devices, data, schedule"):
    doctor.run(options)
  faults = re.findall("(?m)^fault.*$", capsys.readouterr().out)
  for fault, word in zip(faults, words, strict=True):
    assert word in fault


def test_fine_tuning(tmp_path, capsys):
  data_dir = samples.write_data("SST-2", tmp_path, count=8)
  encoder = samples.write_encoder(tmp_path / "encoder", data_dir)
  options = doctor.Options(
    experiment="swe/glue",
    params_override=f"task.data_dir={data_dir},task.init_checkpoint={encoder}",
    model_dir=str(tmp_path / "new"),
  )
  doctor.run(options)
  output = capsys.readouterr().out
  assert "\nfault" not in output and f"{encoder}: fits" in output
  assert "2 checkpoints of" in output

  with open(f"{data_dir}/train.tf_record", "r+b") as records:
    records.truncate(40)
  with pytest.raises(errors.UsageError, match="train.tf_record is cut or has"):
    doctor.run(options)


def test_cost_is_printed_and_written(flags, tmp_path, capsys):
  path = tmp_path / "cost.json"
  doctor_cost.run(doctor_cost.Options(**flags, output=str(path)))
  cost = json.loads(path.read_text())
  output = capsys.readouterr().out
  assert f"{cost['parameters']:,}" in output
  hours = cost["flops_of_methods"]["this run"] / (197e12 * 8 * 0.4) / 3600
  assert f"{hours:.3g}" in output
  assert cost["phases"]["shared"]["steps"] == tiny.TAU


def test_a_program_is_compiled_once(flags, monkeypatch, capsys):
  asked = []

  def compile_program(command, **unused):
    asked.append(pathlib.Path(command[3]).read_bytes())
    report = dict.fromkeys(depths.QUANTITIES, 1.0) | {"seconds": 1.0}
    return subprocess.CompletedProcess(command, 0, json.dumps(report), "")

  monkeypatch.setattr(programs, "require_compiler", lambda: "fake 1")
  monkeypatch.setattr(programs.subprocess, "run", compile_program)
  # The compiler gets a local copy of what is at a URL.
  output_dir = files.as_path("ram://doctor_tpu")
  here = {"depths": (2,), "output_dir": str(output_dir)}
  doctor_tpu.run(doctor_tpu.Options(**flags, **here, fit=True))
  output = capsys.readouterr().out
  assert "micro_batches=1 needs 4 bytes of 17.18 GB: fits" in output
  assert "the unshared step is the stock step" in output
  kept = [path.read_bytes() for path in output_dir.glob("*.hlo_pb")]
  assert len(asked) == 3 and sorted(asked) == sorted(kept)
  assert files.read_json(output_dir / "tpu.json")["versions"] == "fake 1"
