"""examples/beam_prepare.py makes the shards of `swe prepare pretraining`.

`make test-beam` runs it where Beam is installed; elsewhere a loop that pickles
what a pipeline would takes its place.
"""

import importlib.util
import pathlib
import pickle
import sys

import numpy as np
import pytest
from rich import console as rich_console

from swe_tf.data.prepare import job as prepare_job
from swe_tf.data.text import text_files
from tests.data import corpus

_PATH = pathlib.Path(__file__).parents[3] / "examples" / "beam_prepare.py"
_SPEC = importlib.util.spec_from_file_location("beam_prepare", _PATH)
beam_prepare = importlib.util.module_from_spec(_SPEC)
with pytest.MonkeyPatch.context() as _patch:
  _patch.setitem(sys.modules, "beam_prepare", beam_prepare)
  _SPEC.loader.exec_module(beam_prepare)

_HAS_BEAM = importlib.util.find_spec("apache_beam") is not None


def _loop(function, items, arguments):
  del arguments
  for item in items:
    pickle.loads(pickle.dumps(function))(item)


def _prepare(options, output_dir, write_shards=None):
  prepare_job.prepare(
    prepare_job.Options(output_dir=str(output_dir), **options),
    rich_console.Console(quiet=True),
    write_shards,
  )
  return {path.name: path.read_bytes() for path in output_dir.iterdir()}


def test_shards_are_those_of_the_command(tmp_path, monkeypatch):
  # Workers look up its classes.
  monkeypatch.setitem(sys.modules, "beam_prepare", beam_prepare)
  vocab = corpus.write(tmp_path, a=corpus.text(120), b=corpus.text(80, seed=1))
  options = dict(
    input=f"{tmp_path}/?.txt", vocab=vocab, seq_length=64, num_shards=3
  )
  expected = _prepare(options, tmp_path / "command")
  run = beam_prepare.run_pipeline if _HAS_BEAM else _loop
  write = beam_prepare.make_write_shards(["--runner=DirectRunner"], run)
  assert _prepare(options, tmp_path / "beam", write) == expected

  def killed(function, items, arguments):
    run(function, items[:2], arguments)
    raise KeyboardInterrupt

  output = tmp_path / "killed"
  with pytest.raises(KeyboardInterrupt):
    _prepare(options, output, beam_prepare.make_write_shards([], killed))
  before = {p: p.stat().st_mtime_ns for p in output.glob("*.tfrecord")}
  assert len(before) == 2
  assert _prepare(options, output, write) == expected
  assert all(path.stat().st_mtime_ns == before[path] for path in before)


def test_one_block_equals_that_of_all(tmp_path):
  rng = np.random.default_rng(0)
  for trial in range(50):
    folder = tmp_path / str(trial)
    folder.mkdir()
    for name in "abc"[: rng.integers(1, 4)]:
      letters = rng.choice(list("x\n"), rng.integers(1, 12))
      (folder / name).write_text("x" + "".join(letters))
    texts = [text_files.check(path) for path in text_files.match(f"{folder}/*")]
    count = int(rng.integers(1, 15))
    assert list(text_files.read_blocks(texts, count)) == [
      beam_prepare.read_block(texts, count, i) for i in range(count)
    ]
