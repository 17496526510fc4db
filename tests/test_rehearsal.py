"""The rehearsal knows what to do with every command of docs/tpu.md."""

import pathlib
import re

from benchmarks import rehearsal


def test_every_command_is_run_or_left_out_for_a_reason():
  found = list(rehearsal.commands())
  run = [command for command in found if rehearsal.left_out(command) is None]
  for command in run:
    assert re.match(r"(swe|until|[A-Z]+=)", command), command
    # What stands for a value of the reader's is replaced.
    for old, new in rehearsal.replacements(pathlib.Path("/somewhere")).items():
      command = command.replace(old, new)
    words = command.replace("$RUN", "").replace("$DATA", "")
    assert "..." not in words and "BUCKET" not in words and "HOST" not in words
  assert len(run) >= 11


def test_nothing_is_replaced_or_left_out_that_is_not_there():
  text = "\n".join(rehearsal.commands())
  for old in rehearsal.replacements(pathlib.Path("/somewhere")):
    assert old in text, old
  for start in rehearsal.LEFT_OUT:
    assert re.search(f"(?m)^{re.escape(start)}", text), start
