"""Checks that an invalid call fails in one line, before any work, and fast.

    python -m benchmarks.bad_input [--only=sweep] [--jobs=2]
    python -m benchmarks.bad_input --count=1000 --seed=1 [--only=squad_files]

Without `--count`, makes the calls of `bad_calls.py` as a new user would: each
is a process in a directory of its own, with small made-up files. A call passes
if its status is not 0, stderr is one line that says what is wrong, there is no
stack trace, and no file has changed.

With `--count`, makes so many calls of each class of `generated_calls.py`, all
in this process. A call passes if it works, or fails in the same way. `swe
train` ends where the training would begin.

The exit status is 1 if a call does not pass, or if one is slow.
"""

from collections.abc import Iterator
from concurrent import futures
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from typing import NamedTuple
from unittest import mock

from absl import app
from absl import flags
from absl import logging
import gin
import hypothesis
from rich import console as rich_console

from benchmarks import bad_calls
from benchmarks import generated_calls

_JOBS = flags.DEFINE_integer("jobs", 1, "Calls at a time.", lower_bound=1)
_ONLY = flags.DEFINE_string("only", "", "Only calls that contain this.")
_MOST = flags.DEFINE_float("most_seconds", 20.0, "The slowest call.")
_COUNT = flags.DEFINE_integer("count", 0, "Generated calls of each class.")
_SEED = flags.DEFINE_integer("seed", 1, "Seed of the generated calls.")

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_TIMEOUT = 900


class Outcome(NamedTuple):
  """The outcome of a call.

  Attributes:
    line: The call.
    status: Its exit status.
    fault: What is wrong with the answer; empty if nothing is.
    seconds: How long it took.
  """

  line: str
  status: int
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


def _judge(lines: list[str], output: str, says: str = "") -> str:
  """Returns what is wrong with the answer to an invalid call."""
  if not lines:
    return "nothing on stderr"
  if "Traceback" in output + "\n".join(lines):
    return f"a stack trace: {lines[-1]}"
  if says not in lines[-1]:
    return f"no {says!r} in: {lines[-1]}"
  if len(lines) > 1 or not lines[0].startswith("error: "):
    return f"{len(lines)} lines on stderr, the first: {lines[0]}"
  return ""


def _changes(before: dict, after: dict) -> str:
  changed = [n for n in before | after if before.get(n, 0) != after.get(n, 0)]
  return f"changed: {', '.join(sorted(changed))}" if changed else ""


def _make(call: bad_calls.Call) -> Outcome:
  paths = (str(_ROOT), os.environ.get("PYTHONPATH"))
  environment = os.environ | {
    "PYTHONPATH": os.pathsep.join(filter(None, paths))
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
    lines = done.stderr.splitlines()
    if call.is_stock:  # The last line is the reason.
      lines = [f"error: {line}" for line in lines[-1:]]
    fault = _judge(lines, done.stdout, call.says)
    fault = fault or _changes(before, _snapshot(directory))
    if done.returncode == 0:
      fault = "status 0"
  return Outcome(call.line, done.returncode, fault, seconds)


def _start_training(config, model_dir, *_, **__) -> None:
  """What is left of `training.runner.run`: the task checks its data."""
  from official.core import task_factory

  task_factory.get_task(config.task, logging_dir=model_dir)


def _make_here(
  call: generated_calls.Call, directory: pathlib.Path, sound: dict
) -> Outcome:
  """Makes a call in this process; leaves only the sound files behind."""
  from swe_tf import cli
  from swe_tf.training import runner

  for name, content in call.files.items():
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
  before = _snapshot(directory)
  gin.clear_config()
  status, trace, start = 0, "", time.perf_counter()
  with (
    tempfile.TemporaryFile("w+") as output,
    tempfile.TemporaryFile("w+") as errors,
    contextlib.chdir(directory),
    contextlib.redirect_stdout(output),
    contextlib.redirect_stderr(errors),
    mock.patch.object(runner, "run", _start_training),
  ):
    try:
      cli.main(call.arguments)
    except SystemExit as end:
      status = int(end.code or 0)
    except BaseException:  # What a user would see as a stack trace.
      trace = traceback.format_exc()
    seconds = time.perf_counter() - start
    printed = []
    for file in (output, errors):
      file.seek(0)
      printed.append(file.read())
  after, fault = _snapshot(directory), ""
  if trace:
    fault = f"a stack trace:\n{trace}"
  elif status:
    told = ("WARNING: ", "warning: ")
    lines = [x for x in printed[1].splitlines() if not x.startswith(told)]
    # `swe diff` answers with its status.
    if lines or call.arguments[0] != "diff":
      fault = _judge(lines, printed[0])
    fault = fault or _changes(before, after)
  for name in after.keys() - sound.keys():
    path = directory / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
  for name, content in sound.items():
    if content is not None and after.get(name) != content:
      (directory / name).write_bytes(content)
  shown = f"{call.arguments} { ({n: c[:300] for n, c in call.files.items()}) }"
  return Outcome(shown, status, fault, seconds)


def generate(name: str, seed: int, count: int) -> list[Outcome]:
  """Makes `count` calls of a class of `generated_calls.CLASSES`."""
  outcomes: list[Outcome] = []
  with tempfile.TemporaryDirectory() as folder:
    directory = pathlib.Path(folder)
    generated_calls.write_files(directory)
    sound = _snapshot(directory)

    @hypothesis.seed(seed)
    @hypothesis.settings(
      max_examples=count,
      database=None,
      deadline=None,
      derandomize=False,
      phases=[hypothesis.Phase.generate],
      suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(generated_calls.CLASSES[name]())
    def make(call):
      outcomes.append(_make_here(call, directory, sound))

    make()
  return outcomes


def _all() -> Iterator[tuple[str, list[Outcome]]]:
  """Yields the outcomes of the calls, with the name of their class."""
  if not _COUNT.value:
    chosen = [c for c in bad_calls.calls(_ROOT) if _ONLY.value in c.line]
    with futures.ThreadPoolExecutor(_JOBS.value) as pool:
      yield "listed", list(pool.map(_make, chosen))
    return
  logging.set_verbosity(logging.ERROR)
  for name in generated_calls.CLASSES:
    if _ONLY.value in name:
      yield name, generate(name, _SEED.value, _COUNT.value)


def main(_):
  console = rich_console.Console(soft_wrap=True, highlight=False, markup=False)
  is_good = True
  for name, outcomes in _all():
    wrong = [outcome for outcome in outcomes if outcome.fault]
    for outcome in wrong:
      console.print(f"wrong: {outcome.line}\n  {outcome.fault}")
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    median = statistics.median(outcome.seconds for outcome in outcomes)
    works = sum(outcome.status == 0 for outcome in outcomes) - len(
      [outcome for outcome in wrong if outcome.status == 0]
    )
    console.print(
      f"{name}: {len(outcomes)} calls, {works} work, {len(wrong)} wrong; "
      f"median {median:.2f} s, most {slowest.seconds:.2f} s: "
      f"{slowest.line[:200]}"
    )
    is_good &= not wrong and slowest.seconds <= _MOST.value
  sys.exit(not is_good)


if __name__ == "__main__":
  app.run(main)
