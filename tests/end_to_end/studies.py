"""A tiny study, and `swe sweep` in a process."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf
import yaml

from tests import tiny


def write(folder: pathlib.Path, axes, **trainer) -> pathlib.Path:
  """Writes the records and the file of a tiny study; returns the file."""
  (folder / "records").mkdir()
  base = tiny.overrides(tiny.write_records(str(folder / "records")))
  base["trainer"] |= trainer
  (folder / "base.yaml").write_text(yaml.safe_dump(base))
  path = folder / "study.yaml"
  path.write_text(
    yaml.safe_dump(
      {
        "experiment": "swe/bert_pretraining",
        "config_files": ["base.yaml"],
        "overrides": {"runtime": {"distribution_strategy": "off"}},
        "axes": axes,
      }
    )
  )
  return path


def sweep(study, output_dir, *arguments):
  """Starts `swe sweep`."""
  return subprocess.Popen(
    [
      *(sys.executable, "-m", "swe_tf.cli", "sweep", str(study)),
      f"--output_dir={output_dir}",
      *arguments,
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    env=dict(os.environ, COLUMNS="120"),
  )


def assert_same_weights(one: pathlib.Path, other: pathlib.Path) -> None:
  """Asserts that the last checkpoints are equal, bit for bit."""
  ours, theirs = (
    tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder)))
    for folder in (one, other)
  )
  names = [
    name
    for name in ours.get_variable_to_shape_map()
    # `swe train` saves in the background, which counts in another way.
    if "VARIABLE" in name and not name.startswith("save_counter")
  ]
  assert len(names) > 50
  for name in names:
    np.testing.assert_array_equal(
      ours.get_tensor(name), theirs.get_tensor(name), err_msg=name
    )
