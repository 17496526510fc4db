"""`swe finetune` as a user runs it: killed, and called again."""

import pytest

from tests.end_to_end import programs
from tests.studies.finetune import samples


@pytest.mark.slow  # It trains, for a minute or so.
def test_killed_sweep_ends_in_the_same_table(tmp_path):
  data_dir = samples.write_data("SST-2", tmp_path, count=32, max_seq_length=64)
  encoder = tmp_path / "encoder"
  samples.write_encoder(encoder, data_dir, **samples.SMALL)
  flags = (
    "--task=SST-2",
    f"--checkpoint={encoder}",
    f"--data_dir={data_dir}",
    "--learning_rates=1e-3,1e-2",
    "--epochs=10",
    "--params_override=task.train_data.global_batch_size=8,"
    "trainer.steps_per_loop=2,trainer.summary_interval=2,"
    "trainer.checkpoint_interval=2",
  )
  straight, killed = tmp_path / "straight", tmp_path / "killed"
  programs.succeed(programs.swe("finetune", *flags, f"--output_dir={straight}"))
  second = killed / "lr0.01-seed0"
  command = ("finetune", *flags, f"--output_dir={killed}")
  process = programs.swe(*command)
  programs.wait_until(lambda: list(second.glob("ckpt-1?.index")), process)
  process.kill()
  process.communicate()
  assert not (second / "result.json").exists(), "killed too late"
  first = killed / "lr0.001-seed0" / "result.json"
  finished_at = first.stat().st_mtime_ns
  output = programs.succeed(programs.swe(*command))
  assert first.stat().st_mtime_ns == finished_at
  assert "lr0.001-seed0: accuracy" in output and "finished before" in output
  assert "restored from checkpoint" in (second / "log.txt").read_text()
  for name in ("table.txt", "selection.json", "lr0.01-seed0/dev.tsv"):
    assert (killed / name).read_text() == (straight / name).read_text()
