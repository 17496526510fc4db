"""Prints a script that makes a shell complete commands, flags and files.

swe completion bash > ~/.local/share/bash-completion/completions/swe
source <(swe completion zsh)
"""

import dataclasses
import importlib

from swe_tf.commands import names
from swe_tf.commands import options as options_lib

_SCRIPT = """# Written by `swe completion {shell}`.
{prelude}_swe() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" all="${{COMP_WORDS[*]:1}}"
  case "$word" in
    *=*) COMPREPLY=($(compgen -f -- "${{word#*=}}")); return ;;
  esac
  case "$all" in
{cases}
    *) COMPREPLY=($(compgen -W "{first}" -- "$word")) ;;
  esac
}}
complete -o nospace -o default -F _swe swe
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


@dataclasses.dataclass(frozen=True)
class Options:
  """The argument of the command."""

  shell: str = options_lib.argument("The shell.", choices=("bash", "zsh"))


def script(shell: str) -> str:
  """Returns the script for a shell."""
  cases = []
  # Longest first, so that `doctor tpu` is matched before `doctor`.
  for command in sorted(names.COMMANDS, key=len, reverse=True):
    module_name, _ = names.COMMANDS[command]
    module = importlib.import_module(f"swe_tf.commands.{module_name}")
    words = [f"--{name}=" for name in options_lib.flag_names(module.Options)]
    # Second words, such as `tpu` after `doctor`.
    words += [
      other.removeprefix(f"{command} ")
      for other in names.COMMANDS
      if other.startswith(f"{command} ")
    ]
    cases.append(_case(command, [*words, "--help"]))
  firsts = dict.fromkeys(name.split()[0] for name in names.COMMANDS)
  for first in firsts:
    if first not in names.COMMANDS:  # `prepare` alone is not a command.
      seconds = [n.split()[1] for n in names.COMMANDS if n.split()[0] == first]
      cases.append(_case(first, seconds))
  return _SCRIPT.format(
    shell=shell,
    prelude=_ZSH if shell == "zsh" else "",
    cases="\n".join(cases),
    first=" ".join([*firsts, "--help", "--version"]),
  )


def _case(command: str, words: list[str]) -> str:
  return (
    f'    "{command} "*) COMPREPLY=($(compgen -W "{" ".join(words)}" -- '
    f'"$word")) ;;'
  )


def run(options: Options) -> None:
  """Prints the script."""
  print(script(options.shell), end="")
