"""Untrusted files: what they say is read, never run or written elsewhere."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.analysis import report as report_lib
from swe_tf.analysis import scalars
from swe_tf.data.prepare import manifest
from swe_tf.data.text import text_files
from swe_tf.studies import study_file
from swe_tf.studies import worker
from tests.analysis import fake_runs

_ROOT = pathlib.Path(__file__).parents[1]


def test_yaml_makes_no_objects(tmp_path):
  proof = tmp_path / "proof"
  text = f"a: !!python/object/apply:os.mkdir ['{proof}']"
  assert yaml_files.parse(text, "x.yaml") == {"a": [str(proof)]}
  assert not proof.exists()


@pytest.mark.parametrize("value", ["..", "../../x", "/etc/x", ".hidden"])
def test_a_run_stays_in_the_directory_of_its_study(value, tmp_path):
  (run,) = study_file.plan_runs({"own": {value: {}}})
  place = (tmp_path / run.name).resolve()
  assert place.parent == tmp_path.resolve() and not run.name.startswith(".")


@pytest.mark.parametrize("field", ["name", "file"])
def test_a_split_stays_in_its_directory(field, tmp_path):
  data_dir = tmp_path / "data"
  data_dir.mkdir()
  outside = tmp_path / "outside.tf_record"
  outside.write_bytes(b"")
  (data_dir / "dev.tf_record").write_bytes(b"")
  name = "dev/../../outside" if field == "name" else "dev"
  file = "../outside.tf_record" if field == "file" else "dev.tf_record"
  split = {"file": file, "size": 1}
  content = manifest.make(manifest.GLUE, task="SST-2", splits={name: split})
  (data_dir / manifest.FILE_NAME).write_text(json.dumps(content))
  with pytest.raises(errors.UsageError, match="is not the name of"):
    manifest.read(data_dir)


def test_a_report_escapes_what_it_shows(tmp_path):
  evil = "<script>alert(1)"
  for width in (8, 16):  # The verdict lists settings if there are two.
    for index, sharing in enumerate((None, fake_runs.swe())):
      config = fake_runs.config(
        width=width, sharing=sharing, data=f"{evil}/t.txt"
      )
      fake_runs.write_run(tmp_path / f"{evil}-{width}-{index}", config, 3.0)
  contents = report_lib.to_files(report_lib.make([tmp_path]))
  shown = contents["report.html"].decode()
  assert "&lt;script&gt;alert(1)" in shown
  for name in ("report.html", "report.md"):
    assert evil not in contents[name].decode(), name


@pytest.mark.parametrize("name", ["run.lock", "log.txt"])
def test_a_run_follows_no_links_out_of_its_directory(name, tmp_path):
  precious = tmp_path / "precious"
  precious.write_text("kept")
  run = tmp_path / "run"
  run.mkdir()
  (run / name).symlink_to(precious)
  said = worker.work("math:sqrt", str(run), {})
  assert "is a symbolic link, which is not followed" in said
  assert precious.read_text() == "kept"


def test_input_that_never_ends_is_refused(tmp_path):
  fifo = tmp_path / "a.txt"
  os.mkfifo(fifo)
  os.mkfifo(tmp_path / "checkpoint")
  os.mkfifo(tmp_path / "events.out.tfevents.0")
  for read in (
    files.read_text,
    lambda path: text_files.match(str(path)),
    lambda path: files.check_output_dir(path.parent, "model_dir"),
    lambda path: scalars.read_scalars(str(path.parent)),
  ):
    with pytest.raises(errors.UsageError, match="is not a regular file"):
      read(fifo)
  with pytest.raises(errors.UsageError, match="has a NUL"):
    files.read_text("a\0b")


def test_processes_do_not_import_from_the_working_directory(tmp_path):
  (tmp_path / "signal.py").write_text("print('imported', flush=True)")
  script = tmp_path / "bin" / "swe"
  script.parent.mkdir()
  script.write_text(
    "from swe_tf import cli\n"
    "from swe_tf.commands import experiments\n"
    "import multiprocessing, os\n"
    "def run(_):\n"
    "  process = multiprocessing.get_context('spawn').Process("
    "target=os.getpid)\n"
    "  process.start(); process.join(); print(process.exitcode)\n"
    "experiments.run = run\n"
    "if __name__ == '__main__': cli.main(['experiments'])\n"
  )
  command = [sys.executable, str(script)]
  environment = dict(os.environ, PYTHONPATH=str(_ROOT))
  printed = subprocess.check_output(
    command, cwd=tmp_path, text=True, env=environment
  )
  assert printed == "0\n"
