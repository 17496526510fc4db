"""The `swe` command itself: exit codes, near misses, plug-ins, help."""

import contextlib
import dataclasses
import errno
import io
import os
import re
import subprocess
import sys
from unittest import mock

import pytest

from swe_tf import cli
from swe_tf import errors
from swe_tf import plugins


@pytest.fixture(name="swe")
def fixture_swe(capsys, monkeypatch):
  """Calls the command in this process: (exit code, stdout, stderr)."""
  monkeypatch.setenv(plugins.VARIABLE, "")  # Put back at the end.

  def call(*arguments):
    with pytest.raises(SystemExit) as end:
      cli.main(arguments)
    printed = capsys.readouterr()
    return end.value.code or 0, printed.out, printed.err

  return call


def test_help_and_versions_need_no_command(swe):
  for arguments in ([], ["help"], ["--help"]):
    status, output, _ = swe(*arguments)
    assert status == 0
    assert all(f"swe {name} " in output for name in cli.COMMANDS)
  status, output, _ = swe("--version")
  shown = {line.split()[0] for line in output.splitlines()}
  assert status == 0
  assert shown >= {"python", "swe-tf", "tensorflow", "tf-models-official"}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_shows_an_example_and_the_flags(swe, command):
  status, output, _ = swe(*command.split(), "--help")
  assert status == 0
  assert re.search(rf"^ *swe {command}\b", output, re.MULTILINE)
  for field in dataclasses.fields(cli.load(command).Options):
    is_flag = not field.metadata["positional"]
    assert (
      re.search(rf"--(\[no\])?{field.name}:", output) is not None
    ) == is_flag
  assert "--plugins" in output and "--alsologtostderr" not in output


_SCORE = "score squad --version=1.1 --data=x"


@pytest.mark.parametrize(
  "line, message",
  [
    ("prepare gleu", "swe has no command 'prepare gleu'; did you mean prep"),
    ("prepare --help", "swe has no command 'prepare'; there are prepare pret"),
    ("x", "swe has no command 'x'; see swe --help."),
    (f"{_SCORE} --predictons=y", "swe score has no flag --predictons; did you"),
    (f"{_SCORE} --pred=y", "swe score has no flag --pred; did you mean --pred"),
    (_SCORE, "--predictions is missing: SQuAD: a JSON object of answers"),
    (f"{_SCORE} --predictions", "Missing value for flag --predictions."),
    (f"{_SCORE} --predictions=y", "cannot read x: No such file or directory."),
  ],
)
def test_a_wrong_call_is_one_line(swe, line, message):
  status, output, error = swe(*line.split())
  assert (status, output, error.count("\n")) == (2, "", 1)
  assert error.startswith(f"error: {message}")


@pytest.mark.parametrize(
  "outcome, expected",
  [
    (None, (0, "")),
    (0, (0, "")),
    (1, (1, "")),
    (errors.Failed("no run finished."), (1, "error: no run finished.\n")),
    (errors.UsageError("not this."), (2, "error: not this.\n")),
    (KeyboardInterrupt(), (130, "")),
    (ZeroDivisionError(), None),
  ],
)
def test_exit_codes(swe, monkeypatch, outcome, expected):
  def run(options):
    if isinstance(outcome, BaseException):
      raise outcome
    return outcome

  monkeypatch.setattr(cli.load("experiments"), "run", run)
  if expected is None:  # A bug shows its stack trace.
    with pytest.raises(ZeroDivisionError):
      cli.main(["experiments"])
    return
  status, output, error = swe("experiments")
  assert (status, error) == expected
  assert not output


@pytest.mark.parametrize(
  "code", ["import none_such", "def", "raise SystemExit(3)", "exit()"]
)
def test_a_plugin_that_fails_is_one_line(swe, tmp_path, monkeypatch, code):
  (tmp_path / "broken_plugin.py").write_text(code)
  monkeypatch.chdir(tmp_path)
  status, output, error = swe("experiments", "--plugins=broken_plugin")
  assert (status, output, error.count("\n")) == (2, "", 1)
  assert error.startswith("error: plug-in broken_plugin cannot be imported (")


@pytest.mark.parametrize(
  "full",
  [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out/x.json"),
    RuntimeError("{{node x}} out/x.json; No space left on device"),
  ],
)
def test_a_full_disk_is_one_line(monkeypatch, full):
  monkeypatch.setattr(cli, "_drop_output", lambda: None)
  monkeypatch.setattr(
    cli.load("experiments"), "run", mock.Mock(side_effect=full)
  )
  with contextlib.redirect_stderr(io.StringIO()) as shown:
    with pytest.raises(SystemExit) as end:
      cli.main(["experiments"])
  error = shown.getvalue()
  assert (end.value.code, error.count("\n")) == (1, 1)
  assert "out/x.json" in error and "No space left on device" in error


def test_standard_output_on_a_full_device_is_one_line():
  with open("/dev/full", "w") as full:
    done = subprocess.run(
      [sys.executable, "-m", "swe_tf.cli", "experiments"],
      stdout=full,
      stderr=subprocess.PIPE,
      text=True,
      check=False,
    )
  assert (done.returncode, done.stderr.count("\n")) == (1, 1)
  assert done.stderr.startswith("error: cannot write all output: No space left")
