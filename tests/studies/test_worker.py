"""Workers: jobs in another process, its death, its log, its lock, its time."""

import os
import signal
import subprocess
import sys
import time

import pytest

from swe_tf import errors
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import launcher
from swe_tf.studies import locks

_JOBS = "tests.studies.fake_jobs"


@pytest.fixture(name="worker")
def fixture_worker():
  with launcher.workers(stays=True) as (worker,):
    yield worker


def test_a_job_reports_and_returns(worker, tmp_path):
  worker.start(f"{_JOBS}:train", {"steps": 2}, tmp_path / "run")
  told = []
  while not told or told[-1]["event"] == "progress":
    told += worker.receive()
  assert [(m["step"], m["steps"], m["loss"]) for m in told[:-1]] == [
    (1, 2, 1.0),
    (2, 2, 0.5),
  ]
  result = told[-1]["value"]
  directory = directory_lib.RunDirectory(tmp_path / "run")
  assert directory.read_result() == result and result["loss"] == 0.5
  assert directory.log_file.read_text() == "starting at step 0\n"
  assert directory.read_progress() == {
    "step": 2,
    "steps": 2,
    "seconds": result["seconds"],
    "cpu_seconds": result["cpu_seconds"],
  }


def test_errors_are_told_apart(worker, tmp_path):
  with pytest.raises(errors.UsageError, match="^the input is bad$"):
    worker.run(f"{_JOBS}:train", {"end": "usage error"}, tmp_path)
  with pytest.raises(launcher.JobFailed, match="^ValueError: no luck$"):
    worker.run(f"{_JOBS}:train", {"end": "raise"}, tmp_path)
  assert "Traceback" in (tmp_path / "log.txt").read_text()


def test_a_crash_is_named_and_a_new_process_started(worker, tmp_path):
  first = worker.run(f"{_JOBS}:process", {})
  assert worker.run(f"{_JOBS}:process", {}) == first
  with pytest.raises(launcher.JobFailed, match="SIGKILL"):
    worker.run(f"{_JOBS}:train", {"end": "SIGKILL"}, tmp_path)
  assert worker.run(f"{_JOBS}:process", {}) != first


def test_a_process_for_each_job():
  with launcher.workers() as (worker,):
    jobs = {worker.run(f"{_JOBS}:process", {}) for _ in range(2)}
  assert len(jobs) == 2


def test_cores_are_divided(monkeypatch):
  with launcher.workers(2) as workers:
    found = [worker.run(f"{_JOBS}:cores", {}) for worker in workers]
  if len(os.sched_getaffinity(0)) > 1:
    assert not set(found[0]) & set(found[1])
  monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
  share = launcher._share  # pylint: disable=protected-access
  assert [share(index, 2) for index in range(2)] == [[0, 1], [2, 3]]
  assert [share(index, 8) for index in (0, 5)] == [[0], [1]]
  assert share(0, 1) == []


def test_time_adds_up_over_attempts(worker, tmp_path):
  directory = directory_lib.RunDirectory(tmp_path)
  directory.write_progress({"seconds": 100.0, "cpu_seconds": 50.0})
  result = worker.run(f"{_JOBS}:burn", {"seconds": 0.5}, tmp_path)
  assert 100.5 <= result["seconds"] < 110
  assert 50.5 <= result["cpu_seconds"] < 60


def test_plugins_are_loaded(worker, tmp_path, monkeypatch):
  monkeypatch.setenv("SWE_PLUGINS", "no_such_module")
  with pytest.raises(errors.UsageError, match="no_such_module"):
    worker.run(f"{_JOBS}:process", {})


def test_a_run_at_which_somebody_is_is_left_alone(
  worker, tmp_path, monkeypatch
):
  monkeypatch.setattr(locks.FileLock, "patience", 0.1)
  worker.start(f"{_JOBS}:train", {"sleep": 60}, tmp_path)
  while not (tmp_path / "calls.txt").exists():
    time.sleep(0.01)
  pid = (tmp_path / "run.lock").read_text()
  with pytest.raises(errors.UsageError, match=f"another process .*{pid}"):
    with directory_lib.RunDirectory(tmp_path).lock():
      pass
  worker.stop()
  with directory_lib.RunDirectory(tmp_path).lock():
    pass


def test_a_worker_dies_with_its_launcher(tmp_path):
  code = (
    "from swe_tf.studies import launcher\n"
    "worker = launcher.Worker()\n"
    f"worker.run('{_JOBS}:train', {{'sleep': 60}}, {str(tmp_path)!r})"
  )
  process = subprocess.Popen([sys.executable, "-c", code])
  while not (tmp_path / "calls.txt").exists():
    time.sleep(0.01)
  process.send_signal(signal.SIGKILL)
  process.wait()
  with directory_lib.RunDirectory(tmp_path).lock():  # Waits for its end.
    pass


@pytest.mark.parametrize(
  "earlier, now, says",
  [
    ({"a": {"b": 1}}, {"a": {"b": 1}}, ""),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, "a.c 2, .* is 3"),
    ({"a": 1}, {"a": 1, "d": 2}, "d None, .* is 2"),
    ({"a": [1]}, {"a": (1,)}, ""),
  ],
)
def test_the_first_difference_is_named(earlier, now, says):
  if not says:
    directory_lib.refuse_other("here", earlier, now)
    return
  with pytest.raises(errors.UsageError, match=f"here: .*{says}"):
    directory_lib.refuse_other("here", earlier, now)
