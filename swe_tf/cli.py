"""The `swe` command: from a command line to `run(options)` of a command.

The only place that catches errors. The exit code is 0, 1 if the work failed,
2 if the call was wrong, and 130 after Ctrl-C. A command is imported only when
it is called, so commands that do not need TensorFlow start at once.
"""

from collections.abc import Sequence
import dataclasses
import importlib
from importlib import metadata
import inspect
import os
import sys
from types import ModuleType
from typing import NoReturn

from absl import app
from absl import flags

from swe_tf import errors
from swe_tf import plugins
from swe_tf.commands import names
from swe_tf.commands import options as options_lib

COMMANDS = names.COMMANDS
# Shown by `swe --version`.
_PACKAGES = (
  "swe-tf",
  "tensorflow",
  "tf-keras",
  "tf-models-official",
  "tensorflow-text",
  "gin-config",
)
_HELP = {"--help", "-help", "-h", "--helpshort", "--helpfull"}


@dataclasses.dataclass(frozen=True)
class _Common:
  """The flags of every command."""

  plugins: tuple[str, ...] = options_lib.flag(
    "Your own modules to import first; they can register methods or untie "
    "rules.",
    (),
  )


def _usage() -> str:
  width = max(map(len, COMMANDS))
  lines = ["usage: swe COMMAND [FLAGS]"]
  for title, group in names.GROUPS.items():
    lines += ["", f"{title}:"]
    lines += [f"  swe {n:<{width}}  {text}" for n, (_, text) in group.items()]
  return "\n".join(
    [
      *lines,
      "",
      "swe COMMAND --help shows an example and the flags of a command,",
      "swe --version shows the versions that matter.",
    ]
  )


def _versions() -> str:
  """Returns the versions that matter, without importing the packages."""
  python = ".".join(map(str, sys.version_info[:3]))
  lines = [f"python {python}"]
  for name in _PACKAGES:
    try:
      lines.append(f"{name} {metadata.version(name)}")
    except metadata.PackageNotFoundError:
      lines.append(f"{name} is not installed")
  return "\n".join(lines)


def split_command(arguments: Sequence[str]) -> tuple[str, list[str]]:
  """Splits the longest known command off the arguments; '' if there is none."""
  for words in (2, 1):
    command = " ".join(arguments[:words])
    if command in COMMANDS:
      return command, list(arguments[words:])
  return "", list(arguments)


def load(command: str) -> ModuleType:
  """Imports the module of a command."""
  return importlib.import_module(f"swe_tf.commands.{COMMANDS[command][0]}")


def _parse(
  command: str, values: flags.FlagValues, arguments: Sequence[str]
) -> list[str]:
  """Parses the flags and returns the positional arguments."""
  ours = [f"--{name}" for name in values]
  for group in flags.FLAGS.flags_by_module_dict().values():
    for flag in group:  # absl's own: --verbosity, ...
      if flag.name not in values and not flag.name.startswith("help"):
        values[flag.name] = flag
  try:
    rest = values([command, *arguments])[1:]
  except flags.UnrecognizedFlagError as error:
    name = f"--{error.flagname}"
    end = errors.nearest(name, ours, f"{command} --help lists its flags.")
    raise errors.UsageError(f"{command} has no flag {name}; {end}") from error
  except (flags.Error, ValueError) as error:
    message = str(error).removeprefix("flag ").rstrip(".")
    raise errors.UsageError(f"{message}.") from error
  flags.FLAGS.mark_as_parsed()
  return rest


def _run(command: str, module: ModuleType, arguments: Sequence[str]) -> None:
  title = f"swe {command}"
  values = flags.FlagValues()
  options_lib.define_flags(module.Options, values, title)
  options_lib.define_flags(_Common, values, title)
  if _HELP & set(arguments):
    print(f"{inspect.getdoc(module)}\n{values.module_help(title)}")
    return

  def make_options(argv: Sequence[str]):
    rest = _parse(title, values, argv[1:])
    common = options_lib.from_flags(_Common, values, [])
    if common.plugins:
      os.environ[plugins.VARIABLE] = ",".join(common.plugins)
    plugins.load()
    return options_lib.from_flags(module.Options, values, rest)

  app.run(module.run, [title, *arguments], flags_parser=make_options)


def _dispatch(arguments: Sequence[str]) -> None:
  command, rest = split_command(arguments)
  if not command:
    if rest[:1] == ["--version"]:
      print(_versions())
      return
    if rest and rest[0] != "help" and rest[0] not in _HELP:
      name = " ".join(rest[: 2 if rest[0] in ("prepare", "doctor") else 1])
      end = errors.nearest(name, COMMANDS, "swe --help lists the commands.")
      raise errors.UsageError(f"swe has no command {name!r}; {end}")
    print(_usage())
    return
  # TensorFlow's start-up messages have nothing to do with the command.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  _run(command, load(command), rest)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
  """Runs a command and exits.

  Args:
    arguments: The command line without the program; `sys.argv[1:]` by default.
  """
  try:
    _dispatch(sys.argv[1:] if arguments is None else arguments)
  except (errors.UsageError, errors.Failed) as error:
    # Gin appends lines to the message of an error raised in a configurable.
    print(f"error: {str(error).partition(chr(10))[0]}", file=sys.stderr)
    sys.exit(2 if isinstance(error, errors.UsageError) else 1)
  except KeyboardInterrupt:
    sys.exit(130)
  except BrokenPipeError:  # The reader is gone, for example `| head`.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
  sys.exit(0)


if __name__ == "__main__":
  main()
