"""`swe prepare pretraining --runner=...`: the shards of the command, elsewhere.

`make test-beam` runs it where Beam is installed.
"""

import dataclasses
import gzip
import importlib.util
import pathlib
import subprocess
import sys

import pytest
from rich import console as rich_console

from swe_tf import errors
from swe_tf.commands import prepare_pretraining
from swe_tf.data.prepare import job as prepare_job
from swe_tf.data.prepare import journal as journal_lib
from swe_tf.data.prepare import manifest
from tests.data import corpus

_ROOT = pathlib.Path(__file__).parents[3]
_SHARDS = 3

needs_beam = pytest.mark.skipif(
  importlib.util.find_spec("apache_beam") is None,
  reason="apache-beam is not installed; make test-beam installs it",
)


@pytest.fixture(name="options")
def fixture_options(tmp_path):
  """Options for a plain and a compressed file, and no output directory."""
  vocab = corpus.write(tmp_path, a=corpus.text(120), b=corpus.text(80, seed=1))
  with gzip.open(tmp_path / "b.txt.gz", "wb") as f:
    f.write((tmp_path / "b.txt").read_bytes())
  return dict(
    input=f"{tmp_path}/a.txt,{tmp_path}/b.txt.gz",
    vocab=vocab,
    seq_length=64,
    num_shards=_SHARDS,
    masking="whole_word",
  )


def _prepare(options, output_dir, **changes):
  """Runs the job and returns the content of the directory by file name."""
  prepare_job.prepare(
    prepare_job.Options(output_dir=str(output_dir), **(options | changes)),
    rich_console.Console(quiet=True),
  )
  return {path.name: path.read_bytes() for path in output_dir.iterdir()}


@needs_beam
def test_shards_of_beam_are_those_of_the_command(tmp_path, options):
  expected = _prepare(options, tmp_path / "command")
  assert len(expected) == _SHARDS + 2
  found = _prepare(options, tmp_path / "beam", runner="DirectRunner")
  assert found == expected

  # Each finishes what the other has begun.
  for runner in (None, "DirectRunner"):
    output = tmp_path / f"resumed-{runner}"
    _interrupt(tmp_path / "command", output)
    before = {p: p.stat().st_mtime_ns for p in output.glob("*.tfrecord")}
    assert len(before) == 2
    assert _prepare(options, output, runner=runner) == expected
    assert all(p.stat().st_mtime_ns == before[p] for p in before)


def _interrupt(finished, output):
  """Makes a directory as a stopped job leaves it: two shards of three."""
  output.mkdir()
  content = manifest.load(finished)
  shards = content["splits"]["train"]["shards"]
  journaled, noted, _ = sorted(shards)
  for name in (journaled, noted, "vocab.txt"):
    (output / name).write_bytes((finished / name).read_bytes())
  known = content | {
    "seq_length": content["max_seq_length"],
    "lower_case": content["do_lower_case"],
  }
  fields = [field.name for field in dataclasses.fields(manifest.Settings)]
  job = {
    "settings": {name: known[name] for name in fields},
    "inputs": content["inputs"],
  }
  path = str(output / manifest.JOURNAL_NAME)
  journal_lib.Journal(path, job).add(journaled, shards[journaled])
  journal_lib.note(path, noted, shards[noted])


@needs_beam
@pytest.mark.slow
def test_the_command_with_several_processes(tmp_path, options):
  expected = _prepare(options, tmp_path / "command")
  flags = options | dict(output_dir=tmp_path / "beam", runner="DirectRunner")
  command = [
    *(sys.executable, "-m", "swe_tf.cli", "prepare", "pretraining"),
    *(f"--{name}={value}" for name, value in flags.items()),
    "--runner_option=direct_running_mode=multi_processing",
    "--runner_option=direct_num_workers=2",
  ]
  subprocess.run(command, cwd=_ROOT, check=True)
  found = {p.name: p.read_bytes() for p in (tmp_path / "beam").iterdir()}
  assert found == expected


@needs_beam
@pytest.mark.parametrize(
  "changes, message",
  [
    (dict(runner="DirctRunner"), "--runner=DirctRunner: .*DirctRunner"),
    (
      dict(runner="DirectRunner", runner_option=("direct_num_worker=2",)),
      "no option 'direct_num_worker'; did you mean direct_num_workers?",
    ),
    (dict(runner="DirectRunner", input="{folder}/latin1.txt"), "not UTF-8"),
  ],
)
def test_bad_input_writes_nothing(tmp_path, options, changes, message):
  (tmp_path / "latin1.txt").write_bytes(b"fine\ncaf\xe9 au lait")
  before = sorted(tmp_path.rglob("*"))
  if "input" in changes:
    changes["input"] = changes["input"].format(folder=tmp_path)
  with pytest.raises(errors.UsageError, match=message) as caught:
    _prepare(options, tmp_path / "out", **changes)
  assert "\n" not in str(caught.value)
  assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
  "flags, message",
  [
    (dict(jobs=2), "--jobs=2 is for processes on this machine"),
    (dict(runner=None, runner_option=("a=1",)), "a=1 needs --runner"),
    (dict(runner="DataflowRunner"), "--output_dir=out: .* gs://BUCKET/PATH"),
    (
      dict(runner="DataflowRunner", output_dir="gs://b/out"),
      "--input=a.txt: the workers of DataflowRunner",
    ),
  ],
)
def test_flags_that_do_not_go_together(flags, message):
  usual = dict(
    input="a.txt", vocab="v", output_dir="out", runner="DirectRunner"
  )
  with pytest.raises(errors.UsageError, match=message):
    prepare_pretraining.Options(**(usual | flags))


@pytest.mark.skipif(
  importlib.util.find_spec("apache_beam") is not None, reason="Beam is here"
)
def test_without_beam_the_error_says_what_to_do(tmp_path, options):
  with pytest.raises(errors.UsageError, match="`make venv-beam` installs it"):
    _prepare(options, tmp_path / "out", runner="DirectRunner")
