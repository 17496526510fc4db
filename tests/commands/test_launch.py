"""`swe launch`: the scripts that it writes, and what it refuses.

`make rehearsal` runs them from the request to the teardown.
"""

import json
import os
import subprocess

import pytest
import yaml

from swe_tf import errors
from swe_tf.commands import launch
from tests import tiny

_DATA = "task.train_data.input_path=gs://b/t*,task.validation_data.input_path=gs://b/v*"

_TEXT = {"experiment": "swe/bert_pretraining_text"}


def _text(train, vocab=""):
  data = {"input_path": train} | ({"vocab_file_path": vocab} if vocab else {})
  validation = {"input_path": "gs://b/v"}
  return yaml.safe_dump(
    {"task": {"train_data": data, "validation_data": validation}}
  )


@pytest.fixture(name="write")
def fixture_write(tmp_path):
  """Writes the scripts of a small run into `tmp_path/launch`."""
  small = tmp_path / "small.yaml"
  small.write_text(yaml.safe_dump(tiny.overrides("gs://b/x")))

  def write(override=_DATA, **flags):
    defaults = dict(
      experiment="swe/bert_pretraining",
      config_file=(str(small), "experiments/tpu.yaml"),
      params_override=override,
      model_dir="gs://b/runs/a",
      output_dir=str(tmp_path / "launch"),
      zone="us-west4-a",
      repository="https://example.com/swe tf.git",
    )
    launch.run(launch.Options(**defaults | flags))
    return tmp_path / "launch"

  return write


def test_the_scripts_are_complete_and_quoted(write, tmp_path, capsys):
  fit = tmp_path / "tpu.json"
  fit.write_text(json.dumps({"topology": "v5e:2x2", "micro_batches": 2}))
  folder = write(topology="v5e:2x2", fit=str(fit), name="b-1")
  assert "v5litepod-4 in us-west4-a, task.micro_batches=2" in (
    capsys.readouterr().out
  )
  config = yaml.safe_load((folder / "run.yaml").read_text())
  assert config["task"]["micro_batches"] == 2
  assert config["task"]["train_data"]["input_path"] == "gs://b/t*"
  texts = {path.name: path.read_text() for path in folder.glob("*.sh")}
  assert set(texts) == set(launch.SCRIPTS)
  for name, text in texts.items():
    assert "{" + "{" not in text
    subprocess.run(["bash", "-n", str(folder / name)], check=True)
  create = texts["create.sh"]
  assert "--accelerator-type=v5litepod-4" in create and "--spot" in create
  assert "--location=us-west4\n" in create
  assert "git clone 'https://example.com/swe tf.git'" in texts["startup.sh"]
  assert "delete b-1 --zone=us-west4-a" in texts["teardown.sh"]
  with pytest.raises(errors.UsageError, match="launch"):
    write()  # Nothing is overwritten.


def test_the_vm_has_a_vocabulary_of_the_package(write):
  vocab = "experiments/small/characters.txt"
  folder = write(_text(["gs://b/t", "gs://b/u"], vocab), **_TEXT)
  config = yaml.safe_load((folder / "run.yaml").read_text())
  assert config["task"]["train_data"]["vocab_file_path"] == vocab


def test_a_run_is_started_again_after_75_only(write, tmp_path):
  train = str(write(spot=False) / "train.sh")
  assert "--spot" not in (tmp_path / "launch" / "create.sh").read_text()
  fake = tmp_path / "bin" / "swe"
  fake.parent.mkdir()
  fake.write_text(
    '#!/bin/sh\necho "$@" >> calls.txt\n'
    "set -- $(cat statuses.txt)\nstatus=$1\nshift\n"
    'echo "$@" > statuses.txt\nexit $status\n'
  )
  fake.chmod(0o755)
  env = os.environ | {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
  for statuses, end, calls in (
    ("75 75 0", 0, 3),
    ("75 1 0", 1, 2),
    ("2 0", 2, 1),
    ("137 0", 137, 1),
  ):
    (tmp_path / "calls.txt").unlink(missing_ok=True)
    (tmp_path / "statuses.txt").write_text(statuses)
    done = subprocess.run(["bash", train], cwd=tmp_path, env=env, check=False)
    made = (tmp_path / "calls.txt").read_text().splitlines()
    assert (done.returncode, len(made)) == (end, calls), statuses
    assert "--config_file=gs://b/runs/a.launch/run.yaml" in made[0]


@pytest.mark.parametrize(
  "flags, message",
  [
    ({"model_dir": "runs/a"}, "must look like gs://BUCKET/runs/NAME"),
    ({"model_dir": "gs://b/"}, "must look like gs://BUCKET/runs/NAME"),
    ({"zone": "us-west4"}, "--zone .'us-west4'. must look like us-west4-a"),
    ({"name": "A b"}, "--name .'A b'. must look like"),
    ({"repository": "/home/me/swe_tf"}, "must look like https:"),
    ({"gin_params": ("a = 1",)}, "--gin_params does not reach the VM"),
    ({"topology": "v5e:4x4"}, "is not one host"),
    ({"override": _DATA + ",runtime.distribution_strategy=mirrored"}, "tpu.y"),
    (
      {"override": _DATA.replace("gs://b/v", "v")},
      "validation_data.input_path",
    ),
    ({"override": _text(["gs://b/t", "u.txt"])}, r"input_path .u.txt. must be"),
    (_TEXT | {"override": _text("gs://b/t", "v.txt")}, r"vocab_file_path .v.t"),
    ({"override": _DATA + ",task.train_data.global_batch_size=9"}, "divided"),
    ({"override": _DATA.replace("gs://b/t*", "''")}, "train_data.* is not set"),
  ],
)
def test_what_cannot_be_launched_is_one_line(write, tmp_path, flags, message):
  with pytest.raises(errors.UsageError, match=message):
    write(**flags)
  assert not (tmp_path / "launch").exists()


def test_a_fit_for_another_tpu_is_refused(write, tmp_path):
  fit = tmp_path / "tpu.json"
  fit.write_text(json.dumps({"topology": "v4:2x2x1", "micro_batches": 2}))
  with pytest.raises(errors.UsageError, match="is for v4:2x2x1, not v5e:2x4"):
    write(fit=str(fit))
