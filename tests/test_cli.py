"""The `swe` command itself: exit codes, near misses, plug-ins, help."""

import pathlib
import re
import subprocess
import sys
import types

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


def test_usage_lists_the_commands(swe):
  for arguments in ([], ["help"], ["--help"]):
    status, output, _ = swe(*arguments)
    assert status == 0
    assert all(f"swe {name} " in output for name in cli.COMMANDS)


@pytest.mark.parametrize(
  "command, flag",
  [
    ("score", "--predictions"),
    ("train", "--params_override"),
    ("doctor tpu", "--topology"),
    ("experiments", "--plugins"),
  ],
)
def test_help_lists_the_flags_of_a_command(swe, command, flag):
  status, output, _ = swe(*command.split(), "--help")
  assert status == 0
  assert flag in output
  assert "--alsologtostderr" not in output, "absl's own"


_SCORE = ["score", "squad", "--version=1.1", "--data=x"]


@pytest.mark.parametrize(
  "arguments, message",
  [
    (["scor"], "swe has no command 'scor'; did you mean score?"),
    (
      ["prepare", "gleu"],
      "swe has no command 'prepare gleu'; did you mean prepare glue?",
    ),
    (["retrain!"], "swe has no command 'retrain!'; did you mean train?"),
    (["x"], "swe has no command 'x'; swe --help lists the commands."),
    (
      [*_SCORE, "--predictons=y"],
      "swe score has no flag --predictons; did you mean --predictions?",
    ),
    (
      [*_SCORE, "--x"],
      "swe score has no flag --x; swe score --help lists its flags.",
    ),
    (_SCORE, "--predictions is missing; see --help."),
    ([*_SCORE, "--predictions"], "Missing value for flag --predictions."),
    (
      [*_SCORE, "--na_prob_threshold=x"],
      "--na_prob_threshold=x: 'x' is not a number.",
    ),
    ([*_SCORE, "--predictions=y"], "cannot read x: No such file or directory."),
    (
      ["experiments", "--plugins=my_project.methods"],
      "plug-in my_project.methods cannot be imported (No module named "
      "'my_project'); name a module in this directory or on PYTHONPATH.",
    ),
  ],
)
def test_a_wrong_call_is_one_line(swe, arguments, message):
  assert swe(*arguments) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize(
  "outcome, expected",
  [
    (None, (0, "")),
    (0, (0, "")),
    (1, (1, "")),
    (errors.Failed("no run finished."), (1, "error: no run finished.\n")),
    (errors.UsageError("not this."), (2, "error: not this.\n")),
    (KeyboardInterrupt(), (130, "")),
  ],
)
def test_exit_codes(swe, monkeypatch, outcome, expected):
  def run(options):
    if isinstance(outcome, BaseException):
      raise outcome
    return outcome

  module = cli.load("experiments")
  fake = types.SimpleNamespace(Options=module.Options, run=run)
  monkeypatch.setattr(cli, "load", lambda command: fake)
  status, output, error = swe("experiments")
  assert (status, error) == expected
  assert not output


def test_a_bug_shows_its_stack_trace(monkeypatch):
  module = cli.load("experiments")
  fake = types.SimpleNamespace(Options=module.Options, run=lambda _: 1 / 0)
  monkeypatch.setattr(cli, "load", lambda command: fake)
  with pytest.raises(ZeroDivisionError):
    cli.main(["experiments"])


def test_plugins_are_imported_first_and_inherited(tmp_path):
  (tmp_path / "mine.py").write_text("print('mine is here')")
  code = (
    "import os, swe_tf.plugins\n"
    "from swe_tf.commands import experiments\n"
    "experiments.run = lambda _: print(os.environ['SWE_PLUGINS'])\n"
    "from swe_tf import cli\n"
    "cli.main(['experiments', '--plugins=mine'])\n"
  )
  done = subprocess.run(
    [sys.executable, "-c", code],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout == "mine is here\nmine\n"


@pytest.mark.parametrize("module", ["swe_tf.cli", "swe_tf.train"])
def test_the_modules_are_programs(module):
  command = [sys.executable, "-m", module, "score", "--x"]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 2
  assert "has no flag --x" in done.stderr.splitlines()[-1]


def test_versions_are_shown_without_tensorflow(swe):
  status, output, _ = swe("--version")
  assert status == 0
  assert {line.split()[0] for line in output.splitlines()} >= {
    "python",
    "swe-tf",
    "tensorflow",
    "tf-models-official",
  }


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_a_worked_example_in_its_help(swe, command):
  _, output, _ = swe(*command.split(), "--help")
  assert re.search(rf"^ *swe {command}\b", output, re.MULTILINE)


@pytest.mark.parametrize(
  "words, expected",
  [
    (["doc"], {"doctor"}),
    (["prepare", "gl"], {"glue"}),
    (["doctor", "t"], {"tpu"}),
    (["doctor", "tpu", "--topo"], {"--topology="}),
    (["finetune", "--task"], {"--task=", "--tasks="}),
    (["sweep", "--output_dir=setup.c"], {"setup.cfg"}),
  ],
)
def test_a_shell_completes(swe, words, expected):
  _, script, _ = swe("completion", "bash")
  line = ["swe", *words]
  asked = (
    f"COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(words)}; _swe; "
    'printf "%s\\n" "${COMPREPLY[@]}"'
  )
  result = subprocess.run(
    ["bash", "-c", f"{script}\n{asked}"],
    capture_output=True,
    text=True,
    cwd=pathlib.Path(__file__).parents[1],
  )
  assert expected == set(result.stdout.split()), result.stderr
