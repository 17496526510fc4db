"""What people see of a run: its own lines, not those of libraries."""

import io
import logging as standard_logging
import time

from absl import logging
from rich import console as rich_console

from swe_tf import messages


def test_only_what_is_said_is_seen_within_quietly(capfd, monkeypatch):
  before = logging.get_verbosity()
  tensorflow = standard_logging.getLogger("tensorflow")
  # TF_CPP_MIN_LOG_LEVEL sets it when TensorFlow is imported.
  monkeypatch.setattr(tensorflow, "level", standard_logging.WARNING)
  monkeypatch.setattr(tensorflow, "_cache", {})
  with messages.quietly():
    print("orbit")
    logging.warning("absl")
    assert not tensorflow.isEnabledFor(standard_logging.WARNING)
    messages.say("ours")
    rich_console.Console(file=messages.out).print("bar")
    assert messages.is_quiet()
  print("after")
  printed = capfd.readouterr()
  assert printed.out.splitlines() == ["ours", "bar", "after"]
  assert not printed.err
  assert tensorflow.isEnabledFor(standard_logging.WARNING)
  assert logging.get_verbosity() == before and not messages.is_quiet()


def test_what_takes_long_says_so_off_a_terminal(monkeypatch):
  monkeypatch.setattr(messages, "_PAUSE_SECONDS", 0.05)
  stream = io.StringIO()
  with messages.during("reading", rich_console.Console(file=stream)):
    time.sleep(0.3)
  first, *rest = stream.getvalue().splitlines()
  assert first == "reading ..." and len(rest) >= 2
  assert all(line.startswith("reading: ") for line in rest)
