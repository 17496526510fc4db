"""`swe prepare pretraining` in processes that are killed, and in several."""

import time

from swe_tf.data.prepare import manifest
from tests.data import corpus
from tests.end_to_end import programs


def _bytes(folder):
  """Returns all but the configs, which name their folder."""
  paths = (path for path in folder.iterdir() if path.suffix != ".yaml")
  return {path.name: path.read_bytes() for path in paths}


def test_jobs_and_a_kill_make_no_difference(tmp_path):
  options = dict(
    input=f"{tmp_path}/a.txt",
    vocab=corpus.write(tmp_path, a=corpus.text(500)),
    seq_length=64,
    num_shards=3,
  )
  corpus.prepare(output_dir=str(tmp_path / "here"), **options)
  expected = _bytes(tmp_path / "here")

  # One process, killed when the first shard is there; two go on.
  output = tmp_path / "killed"
  flags = options | dict(output_dir=output)
  command = [f"--{name}={value}" for name, value in flags.items()]
  command = ["prepare", "pretraining", *command]
  process = programs.swe(*command, "--jobs=1")
  while not list(output.glob("*.tfrecord")) and process.poll() is None:
    time.sleep(0.01)
  process.kill()
  process.communicate()
  assert not (output / manifest.FILE_NAME).exists()
  for path in output.glob("*.tfrecord"):
    assert path.read_bytes() == expected[path.name]

  assert "tokens" in programs.succeed(programs.swe(*command, "--jobs=2"))
  assert _bytes(output) == expected
