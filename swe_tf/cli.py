"""The `swe` command: finds the module of a subcommand and runs it.

Every subcommand is a module with absl flags and `main(argv)`. It is imported
only when it is called, so that a command without TensorFlow starts at once.
"""

import importlib
import sys
from typing import Dict, List, Tuple

from absl import app

COMMANDS: Dict[str, Tuple[str, str]] = {
    "demo": ("swe_tf.demo", "pre-train a small BERT on this machine's docstrings"),
    "train": ("swe_tf.train", "official.nlp.train with the swe experiments"),
}


def _usage() -> str:
  width = max(map(len, COMMANDS))
  lines = [f"  swe {n:<{width}}  {text}" for n, (_, text) in COMMANDS.items()]
  return "\n".join(
      ["usage: swe COMMAND [FLAGS]", "", *lines, "",
       "swe COMMAND --help lists the flags of a command."]
  )


def split_command(args: List[str]) -> Tuple[str, List[str]]:
  """Splits the longest known command off the arguments; '' if there is none."""
  for words in (2, 1):
    command = " ".join(args[:words])
    if command in COMMANDS:
      return command, args[words:]
  return "", args


def main() -> None:
  """Runs the subcommand that the command line names."""
  command, rest = split_command(sys.argv[1:])
  if not command:
    if rest and rest[0] not in ("help", "--help", "-h"):
      sys.exit(f"error: swe has no command {rest[0]!r}.\n\n{_usage()}")
    print(_usage())
    return
  module = importlib.import_module(COMMANDS[command][0])
  if hasattr(module, "define_flags"):
    module.define_flags()
  app.run(module.main, argv=[f"swe {command}", *rest])


if __name__ == "__main__":
  main()
