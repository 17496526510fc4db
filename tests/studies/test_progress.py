"""The display of runs: bars on a terminal, plain lines in a log."""

import io
import types

import pytest
from rich import console as rich_console

from swe_tf.studies import progress as progress_lib


def _status(step, **fields):
  values = {"steps": 700, "untie_step": 70, "tokens_per_step": 2048}
  values["phase"] = "shared" if step < 70 else "unshared"
  return progress_lib.Status(step=step, **{**values, "loss": 2.5, **fields})


@pytest.fixture(name="clock")
def fixture_clock(monkeypatch):
  """Stands for `time`, and passes when told to."""
  clock = types.SimpleNamespace(now=100.0)
  clock.monotonic = lambda: clock.now
  monkeypatch.setattr(progress_lib, "time", clock)
  return clock


def _show(clock, console, seconds, runs=("model",)):
  """Shows two loops of 10 steps in `seconds` each; returns the display."""
  shown = progress_lib.Progress(console, dict.fromkeys(runs, 1.0))
  shown.start("model")
  for step in (10, 20):
    clock.now += seconds
    shown.step("model", _status(step))
  return shown


@pytest.mark.parametrize("width", [80, 160])
def test_the_bar_has_phase_loss_speed_time_left_and_steps_to_untying(
  clock, width
):
  console = rich_console.Console(
    record=True, force_terminal=True, width=width, file=io.StringIO()
  )
  shown = _show(clock, console, 5)
  console.print(shown.bars)
  text = console.export_text()
  # 10 steps in 5 s: 680 steps take 340 s.
  wanted = "20 of 700, 0:05:40 left, shared, 50 steps to untying"
  assert "model" in text and wanted in text
  if width == 160:
    assert "loss 2.500, 4,096 tokens/s" in text


def test_several_runs_have_a_bar_of_all(clock):
  console = rich_console.Console(
    record=True, force_terminal=True, width=160, file=io.StringIO()
  )
  shown = _show(clock, console, 5, ("model", "baseline"))
  shown.start("baseline")
  shown.step("baseline", _status(350, phase="", untie_step=None))
  console.print(shown.bars)
  everything, model, baseline = console.export_text().splitlines()
  # Of two runs of 700 steps, 370 took 10 s.
  assert "0 of 2 runs" in everything and "0:00:28 left" in everything
  assert model.startswith("model") and "shared" in model
  assert "350 of 700, loss 2.500" in baseline


def test_a_log_has_plain_lines_not_too_many(clock):
  seen = io.StringIO()
  with _show(clock, rich_console.Console(file=seen), 10) as shown:
    assert not seen.getvalue()  # 20 seconds: too soon.
    for step in range(30, 700, 10):
      clock.now += 10
      shown.step("model", _status(step))
    shown.end("model", "done")
  assert "\x1b" not in seen.getvalue() and "\r" not in seen.getvalue()
  lines = seen.getvalue().splitlines()
  steps = [int(line.split()[1]) for line in lines[:-1]]
  # One in half a minute, and one at once when the phase changes.
  assert steps == [30, 60, 70, *range(100, 700, 30)]
  assert lines[2] == (
    "model: 70 of 700, 0:10:30 left, untied after step 70, loss 2.500, "
    "2,048 tokens/s"
  )
