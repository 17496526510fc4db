"""The `swe` command: finds the module of a subcommand and runs it.

Every subcommand is a module with absl flags and `main(argv)`. It is imported
only when it is called, so that a command without TensorFlow starts at once.
"""

import importlib
import inspect
import os
import sys
from types import ModuleType

from absl import app
from absl import flags

from swe_tf import errors

COMMANDS: dict[str, tuple[str, str]] = {
  "demo": ("swe_tf.demo", "pre-train a small BERT on this machine's text"),
  "train": ("swe_tf.train", "official.nlp.train with the swe experiments"),
  "doctor": (
    "swe_tf.commands.doctor",
    "check a command line of swe train before it is run",
  ),
  "doctor cost": ("swe_tf.commands.doctor_cost", "what a run will cost"),
  "doctor tpu": (
    "swe_tf.commands.doctor_tpu",
    "compile the steps for a TPU, without a TPU",
  ),
  "prepare pretraining": (
    "swe_tf.commands.prepare_pretraining",
    "text files to masked TFRecords",
  ),
  "prepare squad": ("swe_tf.commands.prepare_squad", "SQuAD JSON to TFRecords"),
  "prepare glue": ("swe_tf.commands.prepare_glue", "GLUE files to TFRecords"),
  "finetune": (
    "swe_tf.commands.finetune",
    "fine-tune on SQuAD or GLUE as the paper does",
  ),
  "sweep": ("swe_tf.commands.sweep", "run a study: many runs, one file"),
  "score": ("swe_tf.commands.score", "score predictions"),
  "submission": (
    "swe_tf.commands.submission",
    "predictions to the GLUE benchmark's zip",
  ),
  "import": (
    "swe_tf.commands.import_",
    "a Hugging Face BERT to a Model Garden checkpoint",
  ),
  "export": (
    "swe_tf.commands.export",
    "a checkpoint to a SavedModel or to Hugging Face's layout",
  ),
  "report": (
    "swe_tf.commands.report",
    "tables and figures of runs, beside the paper's",
  ),
  "theory": ("swe_tf.commands.theory", "the paper's theory, computed"),
}


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


def split_command(args: list[str]) -> tuple[str, list[str]]:
  """Splits the longest known command off the arguments; '' if there is none."""
  for words in (2, 1):
    command = " ".join(args[:words])
    if command in COMMANDS:
      return command, args[words:]
  return "", args


def _help(module: ModuleType) -> str:
  """Returns what a command is for, and its flags but not those of absl."""
  # absl lists those of the main script, which has none.
  ours = [
    flags.FLAGS.module_help(name)
    for name in sorted(flags.FLAGS.flags_by_module_dict())
    if name.split(".")[0] in ("swe_tf", "official")
  ]
  return "\n".join([inspect.getdoc(module) or "", "", *ours])


def main() -> None:
  """Runs the subcommand that the command line names."""
  command, rest = split_command(sys.argv[1:])
  if not command:
    if rest and rest[0] not in ("help", "--help", "-h"):
      sys.exit(f"error: swe has no command {rest[0]!r}.\n\n{_usage()}")
    print(_usage())
    return
  # What TensorFlow's runtime says at start is not about the command.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  module = importlib.import_module(COMMANDS[command][0])
  if hasattr(module, "define_flags"):
    module.define_flags()
  if {"--help", "-help", "-h", "--helpshort"} & set(rest):
    print(_help(module))
    return

  def run(argv):
    try:
      return module.main(argv)
    except errors.UsageError as error:
      sys.exit(f"error: {error}")

  app.run(run, argv=[f"swe {command}", *rest])


if __name__ == "__main__":
  main()
