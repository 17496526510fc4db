"""The `swe` command: from a command line to `run(options)` of a command.

The only place that catches errors. The exit code is 0, 1 if the work failed,
2 if the call was wrong, and 130 after Ctrl-C. A command is imported only when
it is called, so that one without TensorFlow starts at once.
"""

from collections.abc import Sequence
import dataclasses
import importlib
import inspect
import os
import sys
from types import ModuleType
from typing import NoReturn

from absl import app
from absl import flags

from swe_tf import errors
from swe_tf import plugins
from swe_tf.commands import options as options_lib

# The module in swe_tf.commands, and what it is for.
COMMANDS: dict[str, tuple[str, str]] = {
  "demo": ("demo", "pre-train a small BERT on this machine's text"),
  "train": ("train", "official.nlp.train with the swe experiments"),
  "doctor": ("doctor", "check a command line of swe train before it is run"),
  "doctor cost": ("doctor_cost", "what a run will cost"),
  "doctor tpu": ("doctor_tpu", "compile the steps for a TPU, without a TPU"),
  "prepare pretraining": (
    "prepare_pretraining",
    "text files to masked TFRecords",
  ),
  "prepare squad": ("prepare_squad", "SQuAD JSON to TFRecords"),
  "prepare glue": ("prepare_glue", "GLUE files to TFRecords"),
  "finetune": ("finetune", "fine-tune on SQuAD or GLUE as the paper does"),
  "pilot": ("pilot", "would sharing pay for a planned run, on its own data?"),
  "sweep": ("sweep", "run a study: many runs, one file"),
  "diff": ("diff", "compare two runs: config, curves, weights, slots"),
  "experiments": ("experiments", "list the configurations, or print one"),
  "score": ("score", "score predictions"),
  "submission": ("submission", "predictions to the GLUE benchmark's zip"),
  "import": ("import_", "a Hugging Face BERT to a Model Garden checkpoint"),
  "export": (
    "export",
    "a checkpoint to a SavedModel or to Hugging Face's layout",
  ),
  "report": ("report", "tables and figures of runs, beside the paper's"),
  "theory": ("theory", "the paper's theory, computed"),
}
_HELP = {"--help", "-help", "-h", "--helpshort", "--helpfull"}


@dataclasses.dataclass(frozen=True)
class _Common:
  """The flags of every command."""

  plugins: tuple[str, ...] = options_lib.flag(
    "Modules of yours to import first, which register methods or untie rules.",
    (),
  )


def _usage() -> str:
  width = max(map(len, COMMANDS))
  lines = [f"  swe {n:<{width}}  {text}" for n, (_, text) in COMMANDS.items()]
  return "\n".join(
    [
      "usage: swe COMMAND [FLAGS]",
      "",
      *lines,
      "",
      "swe COMMAND --help lists the flags of a command.",
    ]
  )


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
  """Parses the flags and returns the arguments that are none."""
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
    if rest and rest[0] != "help" and rest[0] not in _HELP:
      name = " ".join(rest[: 2 if rest[0] in ("prepare", "doctor") else 1])
      end = errors.nearest(name, COMMANDS, "swe --help lists the commands.")
      raise errors.UsageError(f"swe has no command {name!r}; {end}")
    print(_usage())
    return
  # What TensorFlow's runtime says at start is not about the command.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  _run(command, load(command), rest)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
  """Runs a command and exits.

  Args:
    arguments: The command line without the program; by default sys.argv's.
  """
  try:
    _dispatch(sys.argv[1:] if arguments is None else arguments)
  except (errors.UsageError, errors.Failed) as error:
    # Gin adds lines of its own to what is raised in a configurable.
    print(f"error: {str(error).partition(chr(10))[0]}", file=sys.stderr)
    sys.exit(2 if isinstance(error, errors.UsageError) else 1)
  except KeyboardInterrupt:
    sys.exit(130)
  except BrokenPipeError:  # Whoever reads has seen enough: `| head`.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
  sys.exit(0)


if __name__ == "__main__":
  main()
