"""The `swe` command: from a command line to `run(options)` of a command.

The only place that catches errors. The exit code is 0, 1 if the work failed,
2 if the call was wrong, and 130 after Ctrl-C. A command is imported only when
it is called, so commands that do not need TensorFlow start at once.
"""

from collections.abc import Sequence
import importlib
from importlib import metadata
import inspect
import keyword
import os
import sys
from types import ModuleType
from typing import NoReturn

from absl import app
from absl import flags
from absl import logging

from swe_tf import errors
from swe_tf import plugins
from swe_tf.commands import options as opt

# In the order in which a user needs them.
_GROUPS = {
  "Try it": {
    "demo": "compare a small BERT with and without sharing",
    "experiments": "list the configurations, or print one",
  },
  "Before a run": {
    "pilot": "find out if sharing would pay off for a planned run",
    "doctor": "check a swe train command line before running it",
    "doctor cost": "estimate what a run will cost",
    "doctor tpu": "compile the steps for a TPU without having one",
    "launch": "write the scripts that train a run on a Cloud TPU",
  },
  "From text to a score": {
    "prepare pretraining": "convert text files to masked TFRecords",
    "train": "run official.nlp.train with the swe experiments",
    "prepare squad": "convert SQuAD JSON to TFRecords",
    "prepare glue": "convert GLUE files to TFRecords",
    "finetune": "fine-tune on SQuAD and GLUE as the paper does",
    "score": "score predictions",
    "submission": "pack predictions into the GLUE benchmark's zip",
  },
  "Many runs": {
    "sweep": "run a study: many runs from one file",
    "report": "tabulate and plot runs beside the paper's results",
    "diff": "compare two runs: config, curves, weights, slots",
  },
  "More": {
    "import": "convert a Hugging Face BERT to Model Garden",
    "export": "convert a checkpoint to a SavedModel or Hugging Face",
    "theory": "check the paper's theory numerically",
  },
}
COMMANDS = [name for group in _GROUPS.values() for name in group]
# Shown by `swe --version`.
_PACKAGES = ("swe-tf", "tensorflow", "tf-keras", "tf-models-official")
_HELP = {"--help", "-help", "-h", "--helpshort", "--helpfull"}


def split_command(arguments: Sequence[str]) -> tuple[str, list[str]]:
  """Splits the longest known command off the arguments; '' if there is none."""
  for words in (2, 1):
    command = " ".join(arguments[:words])
    if command in COMMANDS:
      return command, list(arguments[words:])
  return "", list(arguments)


def load(command: str) -> ModuleType:
  name = command.replace(" ", "_")
  name += "_" * keyword.iskeyword(name)  # import_
  return importlib.import_module(f"swe_tf.commands.{name}")


def make_flags(command: str, module: ModuleType) -> flags.FlagValues:
  """Returns the flags of a command: its own and `--plugins`."""
  values = flags.FlagValues()
  opt.define_flags(module.Options, values, f"swe {command}")
  flags.DEFINE_list(
    "plugins",
    None,
    "Your own modules to import first; they can register methods or untie "
    "rules.",
    values,
    module_name=f"swe {command}",
  )
  return values


def _parse(title: str, values: flags.FlagValues, arguments: Sequence[str]):
  """Parses the flags and returns the positional arguments."""
  ours = [f"--{name}" for name in values]
  for group in flags.FLAGS.flags_by_module_dict().values():
    for flag in group:  # absl's own: --verbosity, ...
      if flag.name not in values and not flag.name.startswith("help"):
        values[flag.name] = flag
  try:
    rest = values([title, *arguments])[1:]
  except flags.UnrecognizedFlagError as error:
    name = f"--{error.flagname}"
    end = errors.nearest(name, ours, f"{title} --help lists its flags.")
    raise errors.UsageError(f"{title} has no flag {name}; {end}") from error
  except (flags.Error, ValueError) as error:
    message = str(error).removeprefix("flag ").rstrip(".")
    raise errors.UsageError(f"{message}.") from error
  flags.FLAGS.mark_as_parsed()
  return rest


def _dispatch(arguments: Sequence[str]) -> None:
  command, rest = split_command(arguments)
  if not command:
    if rest[:1] == ["--version"]:
      print("python", sys.version.partition(" ")[0])
      for name in _PACKAGES:
        print(name, metadata.version(name))
    elif not rest or rest[0] == "help" or rest[0] in _HELP:
      print("usage: swe COMMAND [FLAGS]")
      for title, group in _GROUPS.items():
        lines = [f"  swe {name:<20} {text}" for name, text in group.items()]
        print("", f"{title}:", *lines, sep="\n")
      print(
        "\nswe COMMAND --help shows an example and the flags of a command,"
        "\nswe --version shows the versions that matter."
      )
    else:
      kinds = [each for each in COMMANDS if each.startswith(f"{rest[0]} ")]
      name = " ".join(w for w in rest[: 1 + bool(kinds)] if w not in _HELP)
      end = f"there are {', '.join(kinds)}."
      if name != rest[0] or not kinds:
        end = errors.nearest(name, COMMANDS, "see swe --help.")
      raise errors.UsageError(f"swe has no command {name!r}; {end}")
    return
  # No process that a command starts may import from the working directory.
  os.environ.setdefault("PYTHONSAFEPATH", "1")
  # TensorFlow's start-up messages have nothing to do with the command.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  module = load(command)
  title = f"swe {command}"
  values = make_flags(command, module)
  if _HELP & set(rest):
    print(f"{inspect.getdoc(module)}\n{values.module_help(title)}")
    return

  def make_options(argv: Sequence[str]):
    positional = _parse(title, values, argv[1:])
    plugins.load(values.plugins)
    # Commands print what matters.
    if not getattr(values, "verbose", False):
      logging.set_verbosity(logging.ERROR)
    return opt.from_flags(module.Options, values, positional)

  app.run(module.run, [title, *rest], flags_parser=make_options)


def _drop_output() -> None:
  """Makes standard output go nowhere, so that its last flush succeeds."""
  os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
  """Runs a command, by default that of `sys.argv`, and exits."""
  try:
    try:
      _dispatch(sys.argv[1:] if arguments is None else arguments)
    finally:
      sys.stdout.flush()
  except (errors.UsageError, errors.Failed) as error:
    # Gin appends lines to the message of an error raised in a configurable.
    line = str(error).partition("\n")[0]
    # A name from a file must not control the terminal.
    shown = (c if c.isprintable() else repr(c)[1:-1] for c in line)
    print(f"error: {''.join(shown)}", file=sys.stderr)
    sys.exit(2 if isinstance(error, errors.UsageError) else 1)
  except KeyboardInterrupt:
    sys.exit(130)
  except BrokenPipeError:  # The reader is gone, for example `| head`.
    _drop_output()
    sys.exit(1)
  except Exception as error:
    if not errors.is_full(error):
      raise
    place = getattr(error, "filename", None) or ""
    reason = getattr(error, "strerror", None) or errors.first_line(error)
    print(
      f"error: cannot write {place or 'all output'}: {reason}; free some space "
      "and run the same command again.",
      file=sys.stderr,
    )
    _drop_output()
    sys.exit(1)
  sys.exit(0)


if __name__ == "__main__":
  main()
