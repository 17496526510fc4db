"""Runs that only count, in processes of their own, and how runs are shown."""

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest
from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.studies import executors
from swe_tf.studies import progress as progress_lib
from swe_tf.studies import worker
from tests.studies import fake_jobs

_ROOT = pathlib.Path(__file__).parents[2]


def make_run(output_dir, name, **arguments):
  """Returns such a run, in its directory."""
  return executors.SweepRun(
    name=name,
    directory=worker.RunDirectory(os.path.join(output_dir, name)),
    config=types.SimpleNamespace(as_dict=lambda: {"arguments": arguments}),
    about={"name": name, "axes": {"name": name}},
    function="tests.studies.fake_jobs:train",
    arguments=arguments,
  )


def _execute(runs, jobs=1):
  """Returns why runs failed, and what a person sees."""
  seen = io.StringIO()
  console = rich_console.Console(file=seen, width=200)
  local, show = executors.Local(jobs), lambda result: f"loss {result['loss']}"
  return executors.execute(runs, local, console, show), seen.getvalue()


def _calls(directory):
  return (directory / "calls.txt").read_text().splitlines()


def test_a_bad_run_fails_alone_and_each_has_its_process_and_cores(tmp_path):
  ends = {"a": "raise", "b": "SIGSEGV", "c": "usage error", "d": ""}
  runs = [make_run(tmp_path, n, end=end) for n, end in ends.items()]
  failures, seen = _execute(runs, jobs=2)
  assert failures == {
    "a": "ValueError: no luck",
    "b": "the process ended with SIGSEGV",
    "c": "the input is bad",
  }
  for name, text in failures.items():
    assert f"{name}: failed: {text}; see {tmp_path}/{name}/log.txt" in seen
  assert "Traceback" in (tmp_path / "a" / "log.txt").read_text()
  assert list(executors.results_of(runs)) == ["d"]
  calls = [_calls(tmp_path / name)[0].split(" ", 1) for name in ends]
  assert len({process for process, _ in calls}) == 4
  if len(os.sched_getaffinity(0)) > 1:
    assert len({cores for _, cores in calls}) == 2

  more = [*runs, make_run(tmp_path, "e")]
  failures, seen = _execute(more)
  assert "d: loss" in seen and seen.count("finished before") == 1
  # A failure may be the machine's, so it is tried again, from its checkpoint.
  assert [len(_calls(tmp_path / name)) for name in "abcde"] == [2, 2, 2, 1, 1]
  assert "starting at step 3" in (tmp_path / "a" / "log.txt").read_text()


def test_cores_are_divided(monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
  share = executors.share_of_cores
  assert [share(index, 2) for index in range(2)] == [[0, 1], [2, 3]]
  assert [share(index, 8) for index in (0, 5)] == [[0], [1]]
  assert share(0, 1) == []


def test_a_run_leaves_its_status_and_the_time_of_all_attempts(tmp_path):
  directory = worker.RunDirectory(tmp_path)
  (tmp_path / "progress.json").write_text('{"seconds": 100, "cpu_seconds": 50}')
  job = worker.Job(tmp_path)
  result = fake_jobs.train(job, steps=2, sleep=0.3)
  job.save()
  assert directory.read_result() == result
  assert 100.6 <= result["seconds"] < 110 and 50 <= result["cpu_seconds"] < 60
  progress = directory.read_progress()
  assert progress["step"] == progress["steps"] == 2 and progress["loss"] == 0.5
  assert progress["process"] == os.getpid()


def test_a_log_at_a_url_is_uploaded(tmp_path):
  url = f"file://{tmp_path}"
  for attempt in (1, 2):
    failures, _ = _execute([make_run(url, "a", end="raise")])
    assert failures == {"a": "ValueError: no luck"}
    log = (tmp_path / "a" / "log.txt").read_text()
    assert log.count("ValueError: no luck") == attempt


def _start(tmp_path):
  """Starts two runs, the second a long one, from a process."""
  code = (
    # A job in the background of a shell ignores Ctrl-C, and so would this.
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from tests.studies import test_executors as t\n"
    f"make, path = t.make_run, {str(tmp_path)!r}\n"
    "runs = [make(path, 'a'), make(path, 'b', steps=30, sleep=0.2)]\n"
    "print(t._execute(runs)[1])"
  )
  return subprocess.Popen(
    [sys.executable, "-c", code], cwd=_ROOT, stdout=subprocess.PIPE, text=True
  )


def _wait_for_steps(path, count, process):
  while not path.exists() or int(path.read_text() or 0) < count:
    assert process.poll() is None
    time.sleep(0.01)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_sweep_that_is_killed_goes_on(tmp_path, how):
  first = _start(tmp_path)
  _wait_for_steps(tmp_path / "b" / "checkpoint", 15, first)
  first.send_signal(getattr(signal, how))
  first.communicate()
  assert first.returncode != 0
  step = int((tmp_path / "b" / "checkpoint").read_text())
  progress = json.loads((tmp_path / "b" / "progress.json").read_text())
  assert 0 < progress["step"] <= step and progress["seconds"] > 1
  output, _ = _start(tmp_path).communicate()
  assert "a: loss" in output and "finished before" in output
  log = (tmp_path / "b" / "log.txt").read_text().splitlines()
  assert log[0] == "starting at step 0" and int(log[1].split()[-1]) >= step
  result = json.loads((tmp_path / "b" / "result.json").read_text())
  # Nearly all 30 steps, although this attempt made but some of them.
  assert result["seconds"] > 0.2 * 30 - 3.0
  assert len(_calls(tmp_path / "a")) == 1


def test_a_run_of_another_process_is_left_alone(tmp_path, monkeypatch):
  monkeypatch.setattr(worker, "LOCK_SECONDS", 0.1)
  sweep_process = _start(tmp_path)
  _wait_for_steps(tmp_path / "b" / "checkpoint", 2, sweep_process)
  directory = worker.RunDirectory(tmp_path / "b")
  process = directory.read_progress()["process"]
  with pytest.raises(errors.UsageError, match=f"another process .*{process}"):
    with files.lock(directory.path):
      pass
  os.kill(process, signal.SIGKILL)
  output, _ = sweep_process.communicate()
  assert sweep_process.returncode == 0
  assert "b: failed: the process ended with SIGKILL" in output
  with files.lock(directory.path):
    pass


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


def _terminal(width):
  how = {"record": True, "force_terminal": True, "file": io.StringIO()}
  return rich_console.Console(width=width, **how)


@pytest.mark.parametrize("width", [80, 160])
def test_the_bar_has_phase_loss_speed_time_left_and_steps_to_untying(
  clock, width
):
  console = _terminal(width)
  shown = _show(clock, console, 5)
  console.print(shown.bars)
  text = console.export_text()
  # 10 steps in 5 s: 680 steps take 340 s.
  wanted = "20 of 700, 0:05:40 left, shared, 50 steps to untying"
  assert "model" in text and wanted in text
  if width == 160:
    assert "loss 2.500, 4,096 tokens/s" in text


def test_several_runs_have_a_bar_of_all(clock):
  console = _terminal(160)
  shown = _show(clock, console, 5, ("model", "baseline"))
  shown.start("baseline")
  shown.step("baseline", _status(350, phase="", untie_step=None))
  console.print(shown.bars)
  everything, model, baseline = console.export_text().splitlines()
  # Of two runs of 700 steps, 370 took 10 s.
  assert "0 of 2 runs" in everything and "0:00:28 left" in everything
  assert model.startswith("model") and "shared" in model
  assert "350 of 700, loss 2.500" in baseline


def test_a_run_behind_what_it_had_reported_takes_nothing_off_the_rest(clock):
  shown = _show(clock, _terminal(160), 5, ("model", "baseline"))
  shown.start("baseline", 350, 700)
  shown.step("baseline", _status(330))  # -20 and the other's 20 would be 0.
  shown.step("baseline", _status(350))
  # 40 of the steps took 10 s; 680 and 350 are left.
  assert "0:04:18 left" in shown.bars.tasks[0].fields["note"]


def test_a_log_has_plain_lines_not_too_many(clock):
  seen = io.StringIO()
  with _show(clock, rich_console.Console(file=seen), 10) as shown:
    for step in range(21, 701):
      clock.now += 1
      shown.step("model", _status(step))
    shown.end("model", "done")
  assert "\x1b" not in seen.getvalue() and "\r" not in seen.getvalue()
  lines = seen.getvalue().splitlines()
  steps = [int(line.split()[1]) for line in lines[:-1]]
  # One a loop while loops are slow; later so that none is 5 s from the last,
  # and one when it unties; after five minutes one for each 60th of the time.
  assert steps[:6] == [10, 20, 24, 28, 32, 36] and 70 in steps
  assert 10 <= steps[-1] - steps[-2] <= 12 and len(steps) < 130
  assert lines[1] == (
    "model: 20 of 700, 0:11:20 left, shared, 50 steps to untying, loss 2.500, "
    "2,048 tokens/s"
  )


def test_a_log_is_not_silent_while_runs_start(clock):
  seen = io.StringIO()
  shown = progress_lib.Progress(rich_console.Console(file=seen), {"a": 1.0})
  for _ in range(12):
    clock.now += 1
    shown.tick()
  assert seen.getvalue().splitlines() == [
    "0:00:05 so far, waiting for news of the runs",
    "0:00:10 so far, waiting for news of the runs",
  ]
