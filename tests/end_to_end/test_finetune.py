"""`swe finetune` as a user runs it: killed, and called again."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.studies.finetune import samples

pytestmark = pytest.mark.slow  # Each trains, for a minute or so.

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module", name="inputs")
def fixture_inputs(tmp_path_factory):
  folder = tmp_path_factory.mktemp("inputs")
  data_dir = samples.write_data(
    "SST-2", folder, count=32, real=False, max_seq_length=64
  )
  encoder = folder / "encoder"
  return data_dir, samples.write_encoder(encoder, data_dir, **samples.SMALL)


def _start(output_dir, data_dir, encoder, *flags):
  return subprocess.Popen(
    [
      *(sys.executable, "-m", "swe_tf.cli", "finetune", "--task=SST-2"),
      f"--checkpoint={encoder}",
      f"--data_dir={data_dir}",
      f"--output_dir={output_dir}",
      *flags,
    ],
    cwd=_ROOT,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
  )


def _wait_for(path, process):
  while not list(path.parent.glob(path.name)):
    assert process.poll() is None, process.stdout.read()
    time.sleep(0.01)


def test_killed_sweep_ends_in_the_same_table(tmp_path, inputs):
  flags = (
    "--learning_rates=1e-3,1e-2",
    "--epochs=10",
    "--params_override=task.train_data.global_batch_size=8,"
    "trainer.steps_per_loop=2,trainer.summary_interval=2,"
    "trainer.checkpoint_interval=2",
  )
  straight, killed = tmp_path / "straight", tmp_path / "killed"
  process = _start(straight, *inputs, *flags)
  output, _ = process.communicate()
  assert process.returncode == 0, output

  second = killed / "lr0.01-seed0"
  process = _start(killed, *inputs, *flags)
  _wait_for(second / "ckpt-1?.index", process)
  process.send_signal(signal.SIGKILL)
  process.communicate()
  assert not (second / "result.json").exists(), "killed too late"
  first = killed / "lr0.001-seed0" / "result.json"
  finished_at = first.stat().st_mtime_ns
  process = _start(killed, *inputs, *flags)
  output, _ = process.communicate()
  assert process.returncode == 0, output

  assert first.stat().st_mtime_ns == finished_at
  assert "lr0.001-seed0: accuracy" in output and "finished before" in output
  assert "restored from checkpoint" in (second / "log.txt").read_text()
  for name in ("table.txt", "selection.json", "lr0.01-seed0/dev.tsv"):
    assert (killed / name).read_text() == (straight / name).read_text()
