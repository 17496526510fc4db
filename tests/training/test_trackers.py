"""The scalars of TensorBoard, in the offline forms of other services."""

import json
import os
import subprocess
import sys

import pytest

from swe_tf import errors
from swe_tf.analysis import scalars
from swe_tf.training import trackers
from tests import tiny
from tests.end_to_end import programs


def _train(folder, kind, **variables):
  config_file = folder / "tiny.yaml"
  config_file.write_text(json.dumps(tiny.written(folder)))
  command = ["swe_tf.train", "--experiment=swe/bert_pretraining"]
  command += ["--mode=train_and_eval", f"--model_dir={folder}/run"]
  command += [f"--config_file={config_file}", f"--tracker={kind}"]
  programs.succeed(programs.start(*command, env=os.environ | variables))
  curves = scalars.read_run(folder / "run", None)
  return {name: dict(curve) for name, curve in curves.items()}


def _same(ours, theirs):
  """Compares with TensorBoard's, which also has speeds and histograms."""
  names = ("train/training_loss", "validation/validation_loss")
  for name in (*names, "train/sharing/phase"):
    assert ours[name] == pytest.approx(theirs[name], rel=1e-5), name


def test_mlflow_has_the_curves_of_tensorboard(tmp_path):
  pytest.importorskip("mlflow")
  store = tmp_path / "mlruns"
  curves = _train(
    tmp_path,
    "mlflow",
    MLFLOW_TRACKING_URI=store.as_uri(),
    MLFLOW_ALLOW_FILE_STORE="true",
  )
  ours: dict[str, dict[int, float]] = {}
  for path in store.glob("*/*/metrics/**/*"):
    if path.is_file():
      _, name = str(path).split("/metrics/")
      rows = [line.split() for line in path.read_text().splitlines()]
      ours[name] = {int(step): float(value) for _, value, step in rows}
  _same(ours, curves)


# Its log is one of LevelDB: blocks, records with a header of 7 bytes, and a
# header of as many for the file.
_READ = """
import json, struct, sys
from wandb.proto import wandb_internal_pb2
data, place, found = open(sys.argv[1], "rb").read(), 7, {}
part = b""
while place + 7 <= len(data):
  left = 32768 - place % 32768
  if left < 7:
    place += left
    continue
  _, size, kind = struct.unpack("<IHB", data[place:place + 7])
  part += data[place + 7:place + 7 + size]
  place += 7 + size
  if kind in (1, 4):  # Whole, or the last part.
    record = wandb_internal_pb2.Record.FromString(part)
    part = b""
    for item in record.history.item:
      name = "/".join(item.nested_key) or item.key
      value = json.loads(item.value_json)
      found.setdefault(name, []).append((record.history.step.num, value))
print(json.dumps(found))
"""


def test_wandb_has_the_curves_of_tensorboard(tmp_path):
  pytest.importorskip("wandb")
  where = {"WANDB_DIR": str(tmp_path), "WANDB_MODE": "offline"}
  curves = _train(tmp_path, "wandb", **where)
  (path,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
  done = subprocess.run(
    [sys.executable, "-c", _READ, str(path)],
    capture_output=True,
    text=True,
    check=True,
  )
  ours = {name: dict(rows) for name, rows in json.loads(done.stdout).items()}
  _same(ours, curves)


def test_a_missing_package_is_one_line(monkeypatch):
  monkeypatch.setitem(sys.modules, "mlflow", None)
  with pytest.raises(errors.UsageError, match=r"pip install '\.\[mlflow\]'"):
    trackers.load("mlflow")
