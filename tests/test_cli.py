"""The `swe` command itself."""

import subprocess
import sys

import pytest

from swe_tf import cli


def _swe(*arguments):
  done = subprocess.run(
    [sys.executable, "-m", "swe_tf.cli", *arguments],
    capture_output=True,
    text=True,
    check=False,
  )
  return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
  "arguments, expected",
  [
    (["doctor", "--x=1"], ("doctor", ["--x=1"])),
    (["doctor", "tpu", "--x=1"], ("doctor tpu", ["--x=1"])),
    (["prepare", "glue"], ("prepare glue", [])),
    (["prepare"], ("", ["prepare"])),
    ([], ("", [])),
  ],
)
def test_the_longest_command_is_taken(arguments, expected):
  assert cli.split_command(arguments) == expected


def test_what_there_is_and_what_there_is_not():
  status, output, _ = _swe("--help")
  assert status == 0
  assert all(f"swe {name} " in output for name in cli.COMMANDS)
  status, _, errors = _swe("retrain")
  assert status == 1
  assert errors.startswith("error: swe has no command 'retrain'")


@pytest.mark.parametrize(
  "command, flag",
  [
    ("score", "--predictions"),
    ("train", "--params_override"),
    ("doctor tpu", "--topology"),
  ],
)
def test_help_lists_the_flags_of_a_command(command, flag):
  status, output, _ = _swe(*command.split(), "--help")
  assert status == 0
  assert flag in output
  assert "--alsologtostderr" not in output, "absl's own"
