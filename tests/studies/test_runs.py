"""Sweeps of jobs that only count: what is run, kept, resumed and shared."""

import io
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from rich import console as rich_console

from swe_tf import errors
from swe_tf.studies import launcher
from swe_tf.studies import sweep as sweep_lib

_ROOT = pathlib.Path(__file__).parents[2]


def _run(name, **arguments):
  return sweep_lib.Run(
    name=name,
    function="tests.studies.fake_jobs:train",
    arguments=arguments,
    config={"arguments": arguments},
    about={"axes": {"name": name}},
  )


def _execute(runs, output_dir, jobs=1, shard=(0, 1)):
  """Returns the sweep, what failed, and what a person sees."""
  seen = io.StringIO()
  console = rich_console.Console(file=seen, width=200)
  sweep = sweep_lib.Sweep(runs, output_dir, shard)
  with (
    launcher.workers(jobs) as workers,
    sweep.progress(
      console, lambda result: f"loss {result['loss']}"
    ) as progress,
  ):
    failures = sweep.execute(workers, progress)
  sweep.write_results(failures)
  return sweep, failures, seen.getvalue()


def _calls(directory):
  return len((directory / "calls.txt").read_text().splitlines())


def test_a_bad_run_does_not_stop_the_others(tmp_path):
  runs = [
    _run("a", end="raise"),
    _run("b", end="SIGSEGV"),
    _run("c", end="usage error"),
    _run("d"),
  ]
  sweep, failures, seen = _execute(runs, tmp_path, jobs=2)
  assert list(sweep.results()) == ["d"]
  for name, text in (("a", "no luck"), ("b", "SIGSEGV"), ("c", "input is bad")):
    assert text in str(failures[name])
    assert (
      f"{name}: failed: {failures[name]}; see {tmp_path}/{name}/log" in seen
    )
  assert isinstance(failures["c"], errors.UsageError)
  results = json.loads((tmp_path / "results.json").read_text())
  assert [(each["name"], each["axes"]) for each in results] == [
    ("d", {"name": "d"})
  ]


def test_what_is_finished_is_not_repeated_and_more_can_be_added(tmp_path):
  _execute([_run("a"), _run("b", end="raise")], tmp_path)
  _, _, seen = _execute(
    [_run("a"), _run("b", end="raise"), _run("c")], tmp_path
  )
  assert seen.count("finished before") == 1
  # A failure may be the machine's.
  assert [_calls(tmp_path / name) for name in "abc"] == [1, 2, 1]
  assert "starting at step 3" in (tmp_path / "b" / "log.txt").read_text()


def test_runs_of_another_configuration_are_refused(tmp_path):
  _execute([_run("a")], tmp_path)
  with pytest.raises(errors.UsageError, match="arguments.steps None, but .* 5"):
    sweep_lib.Sweep([_run("a", steps=5)], tmp_path)


def test_shards_divide_a_sweep(tmp_path):
  runs = [_run(name) for name in "abcde"]
  done = []
  for index in range(2):
    assert not (tmp_path / "results.json").exists()
    _, _, seen = _execute(runs, tmp_path, shard=(index, 2))
    done.append([name for name in "abcde" if f"{name}: loss" in seen])
  assert done == [["a", "c", "e"], ["b", "d"]]
  results = json.loads((tmp_path / "results.json").read_text())
  assert [each["name"] for each in results] == list("abcde")
  # More machines than runs.
  assert _execute(runs[:1], tmp_path, shard=(3, 4))[1] == {}


@pytest.mark.parametrize("text", ["1/1", "2", "-1/2", "1/0", "a/b"])
def test_wrong_shards(text):
  with pytest.raises(errors.UsageError, match="0 <= i < n"):
    sweep_lib.parse_shard(text)


def test_shards_are_read():
  assert sweep_lib.parse_shard("") == (0, 1)
  assert sweep_lib.parse_shard("2/3") == (2, 3)


def test_time_left_is_told(tmp_path):
  _, _, seen = _execute([_run("a", sleep=0.2), _run("b")], tmp_path)
  first, second = seen.splitlines()
  assert " s), 0:00:0" in first and first.endswith(" left")
  assert "left" not in second


def _start(tmp_path):
  """Starts a sweep of two runs, the second a long one, in a process."""
  code = (
    # A job in the background of a shell ignores Ctrl-C, and so would this.
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from tests.studies import test_sweep as t\n"
    "runs = [t._run('a'), t._run('b', steps=30, sleep=0.2)]\n"
    f"print(t._execute(runs, {str(tmp_path)!r})[2])"
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
  _wait_for_steps(tmp_path / "b" / "checkpoint", 12)
  first.send_signal(getattr(signal, how))
  first.communicate()
  assert first.returncode != 0
  step = int((tmp_path / "b" / "checkpoint").read_text())
  progress = json.loads((tmp_path / "b" / "progress.json").read_text())
  assert 0 < progress["step"] <= step and progress["seconds"] > 1
  second = _start(tmp_path)
  output, _ = second.communicate()
  assert second.returncode == 0
  assert "a: loss" in output and "finished before" in output
  log = (tmp_path / "b" / "log.txt").read_text().splitlines()
  assert log[0] == "starting at step 0" and int(log[1].split()[-1]) >= step
  result = json.loads((tmp_path / "b" / "result.json").read_text())
  # Nearly all 30 steps, although this attempt made but some of them.
  assert result["seconds"] > 0.2 * 30 - 2.5
  assert _calls(tmp_path / "a") == 1


def test_a_worker_that_is_killed_fails_its_run_alone(tmp_path):
  first = _start(tmp_path)
  _wait_for_steps(tmp_path / "b" / "checkpoint", 2)
  pid = int((tmp_path / "b" / "run.lock").read_text())
  subprocess.run(["kill", "-KILL", str(pid)], check=True)
  output, _ = first.communicate()
  assert first.returncode == 0
  assert "b: failed: the process ended with SIGKILL" in output
