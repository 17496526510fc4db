"""Runs that only count, in processes of their own: ended, killed, resumed."""

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
from swe_tf.studies import executors
from swe_tf.studies import worker
from tests.studies import fake_jobs

_ROOT = pathlib.Path(__file__).parents[2]


def make_run(output_dir, name, **arguments):
  """Returns such a run, in its directory."""
  path = os.path.join(output_dir, name)
  return executors.SweepRun(
    name=name,
    directory=worker.RunDirectory(path),
    config=types.SimpleNamespace(as_dict=lambda: {"arguments": arguments}),
    about={"name": name, "axes": {"name": name}},
    call=worker.Call(
      function="tests.studies.fake_jobs:train",
      directory=path,
      arguments=arguments,
    ),
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


def test_plugins_are_loaded(tmp_path, monkeypatch):
  monkeypatch.setenv("SWE_PLUGINS", "no_such_module")
  failures, _ = _execute([make_run(tmp_path, "a")])
  assert "no_such_module" in failures["a"]


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


def _wait_for_steps(path, count):
  while not path.exists() or int(path.read_text() or 0) < count:
    time.sleep(0.01)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_sweep_that_is_killed_goes_on(tmp_path, how):
  first = _start(tmp_path)
  _wait_for_steps(tmp_path / "b" / "checkpoint", 15)
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
  _wait_for_steps(tmp_path / "b" / "checkpoint", 2)
  directory = worker.RunDirectory(tmp_path / "b")
  process = directory.read_progress()["process"]
  with pytest.raises(errors.UsageError, match=f"another process .*{process}"):
    with directory.lock():
      pass
  os.kill(process, signal.SIGKILL)
  output, _ = sweep_process.communicate()
  assert sweep_process.returncode == 0
  assert "b: failed: the process ended with SIGKILL" in output
  with directory.lock():
    pass
