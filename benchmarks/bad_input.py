"""Checks that every wrong call fails in one line, before any work, and fast.

    python -m benchmarks.bad_input [--only=sweep] [--jobs=2]

Makes the calls of `bad_calls.py` as a new user would: each is a process in a
directory of its own, with small made-up files. A call passes if its status is
not 0, stderr is one line that says what is wrong, there is no stack trace, and
no file has changed. The exit status is 1 if a call does not pass, or if they
are slow.
"""

from collections.abc import Iterator
from concurrent import futures
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from absl import app
from absl import flags
from rich import console as rich_console

from benchmarks import bad_calls

_JOBS = flags.DEFINE_integer("jobs", 1, "Calls at a time.", lower_bound=1)
_ONLY = flags.DEFINE_string("only", "", "Only calls that contain this.")
_MOST = flags.DEFINE_float("most_seconds", 20.0, "The slowest call.")

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_TIMEOUT = 900


class Outcome(NamedTuple):
  """The outcome of a call.

  Attributes:
    call: The call.
    fault: What is wrong with the answer; empty if nothing is.
    seconds: How long it took.
  """

  call: bad_calls.Call
  fault: str
  seconds: float


def _snapshot(directory: pathlib.Path) -> dict[str, bytes | None]:
  """Returns all files and folders, with the content of the files."""
  return {
    str(path.relative_to(directory)): path.read_bytes()
    if path.is_file()
    else None
    for path in sorted(directory.rglob("*"))
  }


def _judge(call: bad_calls.Call, done: subprocess.CompletedProcess) -> str:
  """Returns what is wrong with an answer; empty if nothing is."""
  lines = done.stderr.splitlines()
  if done.returncode == 0:
    return "status 0"
  if not lines:
    return "nothing on stderr"
  if call.says not in lines[-1]:
    return f"no {call.says!r} in: {lines[-1]}"
  if call.is_stock:
    return ""
  if "Traceback" in done.stdout + done.stderr:
    return "a stack trace"
  if len(lines) > 1 or not lines[0].startswith("error: "):
    return f"{len(lines)} lines on stderr, the first: {lines[0]}"
  return ""


def _make(call: bad_calls.Call) -> Outcome:
  environment = os.environ | {
    "PYTHONPATH": os.pathsep.join(
      filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))
    )
  }
  with tempfile.TemporaryDirectory() as name:
    directory = pathlib.Path(name)
    bad_calls.write_files(directory)
    before = _snapshot(directory)
    start = time.perf_counter()
    done = subprocess.run(
      [sys.executable, "-m", *call.arguments],
      cwd=directory,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
      timeout=_TIMEOUT,
    )
    seconds = time.perf_counter() - start
    fault = _judge(call, done)
    after = _snapshot(directory)
    if not fault and after != before:
      changed = [n for n in before | after if before.get(n) != after.get(n)]
      changed += [n for n in after if n not in before]
      fault = f"changed: {', '.join(sorted(set(changed)))}"
  return Outcome(call, fault, seconds)


def _chosen() -> Iterator[bad_calls.Call]:
  for call in bad_calls.calls(_ROOT):
    if _ONLY.value in call.line:
      yield call


def main(_):
  console = rich_console.Console(soft_wrap=True, highlight=False, markup=False)
  outcomes = []
  with futures.ThreadPoolExecutor(_JOBS.value) as pool:
    for outcome in pool.map(_make, _chosen()):
      outcomes.append(outcome)
      if outcome.fault:
        console.print(f"wrong: {outcome.call.line}\n  {outcome.fault}")
  if not outcomes:
    sys.exit(f"no call contains {_ONLY.value!r}")
  slowest = max(outcomes, key=lambda outcome: outcome.seconds)
  median = statistics.median(outcome.seconds for outcome in outcomes)
  wrong = sum(bool(outcome.fault) for outcome in outcomes)
  console.print(
    f"{len(outcomes)} calls, {wrong} wrong; median {median:.2f} s, most "
    f"{slowest.seconds:.2f} s: {slowest.call.line}"
  )
  sys.exit(int(wrong > 0 or slowest.seconds > _MOST.value))


if __name__ == "__main__":
  app.run(main)
