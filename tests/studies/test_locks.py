"""A run on a store without locks: file:// stands for a bucket of many."""

import json
import threading
import time

import pytest

from swe_tf import errors
from swe_tf import files
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import launcher
from swe_tf.studies import locks

_HOLD = "tests.studies.fake_jobs:hold"


@pytest.fixture(name="url")
def fixture_url(tmp_path, monkeypatch):
  monkeypatch.setattr(locks.Lease, "patience", 1.0)
  monkeypatch.setattr(locks.Lease, "interval", 0.05)
  return f"file://{tmp_path}/run"


def _lock(url):
  return directory_lib.RunDirectory(url).lock()


def test_a_worker_holds_the_lease_until_it_ends_or_is_killed(url, tmp_path):
  with launcher.workers() as (worker,):
    worker.start(_HOLD, {"seconds": 60}, url)
    assert worker.receive()[0]["text"] == "holding"
    pid = worker._process.pid
    with pytest.raises(errors.UsageError, match=f"another process .*{pid} on "):
      with _lock(url):
        pass
    worker._process.kill()
    worker._process.wait()
    assert (tmp_path / "run/run.lock").exists()
    with _lock(url):  # Its process is gone: nobody waits for it to be old.
      pass
    assert not (tmp_path / "run/run.lock").exists()
    worker.stop()
    worker.run(_HOLD, {}, url)
    worker.run(_HOLD, {}, url)
  assert not (tmp_path / "run/run.lock").exists()
  assert (tmp_path / "run/result.json").exists()
  log = (tmp_path / "run/log.txt").read_text()
  assert log.count("held by") == 2  # That of the killed one was not saved.
  assert not (tmp_path / "file:").exists()


def test_in_this_process_it_is_held_once(url):
  with _lock(url), pytest.raises(errors.UsageError, match="another process"):
    with _lock(url):
      pass
  with _lock(url):
    pass


@pytest.mark.parametrize("is_alive", [False, True])
def test_a_lease_of_another_machine_is_watched(url, monkeypatch, is_alive):
  monkeypatch.setattr(locks.Lease, "_DEAD_AFTER", 0.4)
  path = files.as_path(url) / "run.lock"
  ended = threading.Event()

  def beat():
    count = 0
    while not ended.wait(0.1 if count else 0):
      content = {"host": "elsewhere", "process": 1, "token": "a"}
      count += is_alive or not count
      files.write_text(path, json.dumps(content | {"beat": count}))
      if not is_alive:
        return

  thread = threading.Thread(target=beat)
  thread.start()
  while not path.exists():
    time.sleep(0.01)
  try:
    if is_alive:
      with pytest.raises(errors.UsageError, match="1 on elsewhere"):
        with _lock(url):
          pass
    else:
      start = time.monotonic()
      with _lock(url):
        assert time.monotonic() - start > 0.4
  finally:
    ended.set()
    thread.join()


def test_a_holder_beats_and_gives_up_what_was_taken(url, monkeypatch):
  monkeypatch.setattr(locks.Lease, "_BEAT", 0.3)
  path = files.as_path(url) / "run.lock"
  with _lock(url):
    first = files.read_text(path)
    deadline = time.monotonic() + 30
    while files.read_text(path) == first:
      assert time.monotonic() < deadline
      time.sleep(0.01)
    files.write_text(path, "{}")  # Somebody took it for dead.
    time.sleep(0.6)
  assert files.read_text(path) == "{}"
