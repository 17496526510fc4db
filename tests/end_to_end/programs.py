"""Programs as a user runs them, and a tiny study for `swe sweep`."""

from collections.abc import Callable
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import yaml

from tests import tiny

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 1500


def start(*command: Any, **options) -> subprocess.Popen:
  """Starts a Python module in the repository; all it prints is one text."""
  how = {"cwd": ROOT, "text": True, "stdout": subprocess.PIPE}
  how["stderr"] = subprocess.STDOUT
  words = [sys.executable, "-m", *map(str, command)]
  # A command that ran in this process may have set PYTHONSAFEPATH.
  env = options.pop("env", os.environ) | {"PYTHONPATH": str(ROOT)}
  return subprocess.Popen(words, env=env, **(how | options))


def swe(*arguments: Any) -> subprocess.Popen:
  """Starts the command `swe`."""
  wide = dict(os.environ, COLUMNS="160")
  return start("swe_tf.cli", *arguments, env=wide)


def finish(process: subprocess.Popen) -> tuple[int, str]:
  """Returns the exit status and what was printed."""
  output, _ = process.communicate(timeout=PATIENCE)
  return process.returncode, output


def succeed(process: subprocess.Popen) -> str:
  """Returns what was printed by a program that must end well."""
  status, output = finish(process)
  assert status == 0, output[-3000:]
  return output


def wait_until(is_so: Callable[[], Any], *processes: subprocess.Popen) -> None:
  """Waits for what processes do before they end."""
  end = time.time() + PATIENCE
  while not is_so():
    assert time.time() < end
    for process in processes:
      assert process.poll() is None, process.communicate()[0]
    time.sleep(0.01)


def write_study(folder: pathlib.Path, axes: Any, **trainer) -> pathlib.Path:
  """Writes the records and the file of a tiny study; returns the file."""
  base = tiny.written(folder / "records")
  base["trainer"] |= trainer
  (folder / "base.yaml").write_text(yaml.safe_dump(base))
  study = {"experiment": "swe/bert_pretraining", "axes": axes}
  study["config_files"] = ["base.yaml"]
  study["overrides"] = {"runtime": {"distribution_strategy": "off"}}
  path = folder / "study.yaml"
  path.write_text(yaml.safe_dump(study))
  return path
