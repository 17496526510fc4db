"""Executes runs in their directories: in processes here, or on a Ray cluster.

`Local` and `Ray` have `run(calls, tick)`, which does the calls, calls `tick`
about every second, and yields the name of each call that ends and why it
failed. Whatever happens to a process, its run resumes from its last checkpoint
when it is called again. Imports no TensorFlow.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
import contextlib
import dataclasses
import multiprocessing
from multiprocessing import connection
import os
import signal
import threading
from typing import Any

from rich import console as rich_console

from swe_tf import errors
from swe_tf import plugins
from swe_tf.studies import progress as progress_lib
from swe_tf.studies import worker

_TICK_SECONDS = 1.0
# How often Ray starts a run again whose machine or process died.
_RETRIES = 10

Calls = Mapping[str, worker.Call]
# The name of each call that ends, and why it failed; '' if it did not.
Ended = Generator[tuple[str, str], None, None]


class Local:
  """Processes on this machine, `jobs` at a time, which divide its cores."""

  def __init__(self, jobs: int = 1):
    self._shares = [share_of_cores(index, jobs) for index in range(jobs)]

  def run(self, calls: Calls, tick: Callable[[], Any]) -> Ended:
    """Does the calls. If it is interrupted, the processes end at once."""
    # A fork would inherit TensorFlow's threads half alive.
    context = multiprocessing.get_context("spawn")
    waiting, free = list(calls), list(self._shares)
    running: dict[Any, tuple[str, Any, list[int]]] = {}
    try:
      while waiting or running:
        while waiting and free:
          name, cores = waiting.pop(0), free.pop(0)
          answer, sender = context.Pipe(duplex=False)
          process = context.Process(
            target=_work_here, args=(calls[name], cores, sender)
          )
          process.start()
          sender.close()  # So that its end is seen here.
          running[process] = name, answer, cores
        connection.wait([each.sentinel for each in running], _TICK_SECONDS)
        tick()
        for process in [each for each in running if each.exitcode is not None]:
          name, answer, cores = running.pop(process)
          free.append(cores)
          try:
            yield name, answer.recv()
          except EOFError:  # It died.
            code = process.exitcode
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            yield name, f"the process ended with {how}"
    finally:
      for process in running:
        process.kill()
        process.join()


def _work_here(call: worker.Call, cores: list[int], answer) -> None:
  """Does a call in a new process of this machine."""
  # Ctrl-C is for the parent, which then ends this process.
  signal.signal(signal.SIGINT, signal.SIG_IGN)

  def end_with_parent():
    # If the parent is killed, the next one may resume this very run.
    multiprocessing.parent_process().join()  # type: ignore[union-attr]
    os._exit(1)

  threading.Thread(target=end_with_parent, daemon=True).start()
  if cores:  # Before TensorFlow counts them.
    os.sched_setaffinity(0, cores)
  answer.send(worker.work(call))


def share_of_cores(index: int, count: int) -> list[int]:
  """Returns one of `count` equal parts of the cores; empty stands for all."""
  if count == 1 or not hasattr(os, "sched_getaffinity"):
    return []
  cores = sorted(os.sched_getaffinity(0))
  each = max(1, len(cores) // count)
  first = index * each % len(cores)
  return cores[first : first + each]


class Ray:
  """Tasks on a Ray cluster whose machines all see the runs' directories."""

  def __init__(self, address: str, jobs: int = 1):
    """Connects to a cluster; `jobs` runs divide the cores of a machine.

    The address is `HOST:PORT` of the head, from one of its machines, or
    `ray://HOST:PORT` from elsewhere.
    """
    try:
      import ray
    except ImportError as error:
      raise errors.UsageError(
        "Ray is not installed: pip install 'swe-tf[ray]'."
      ) from error
    names = ("PYTHONPATH", plugins.VARIABLE)
    passed_on = {"env_vars": {n: os.environ.get(n, "") for n in names}}
    try:
      ray.init(address=address, log_to_driver=False, runtime_env=passed_on)
    except (ConnectionError, RuntimeError, ValueError) as error:
      raise errors.UsageError(
        f"no Ray cluster at {address} ({errors.first_line(error)}); start one "
        "with `ray start --head`."
      ) from error
    self._ray, self._jobs = ray, jobs

  def run(self, calls: Calls, tick: Callable[[], Any]) -> Ended:
    """Does the calls. A run whose machine dies continues on another."""
    ray = self._ray
    # A process for each run, as on this machine: max_calls.
    work = ray.remote(max_calls=1, max_retries=_RETRIES)(_work_on_cluster)
    machines = [each["Resources"] for each in ray.nodes() if each["Alive"]]
    running = {}
    for name, call in calls.items():
      wanted = self._resources(call, machines)
      task = work.options(**wanted).remote(call, wanted["num_cpus"])
      running[task] = name
    try:
      while running:
        ended, _ = ray.wait(list(running), timeout=_TICK_SECONDS)
        tick()
        for task in ended:
          name = running.pop(task)
          try:
            yield name, ray.get(task)
          except ray.exceptions.RayError as error:
            yield name, f"{type(error).__name__}: {errors.first_line(error)}"
    finally:
      for task in running:
        ray.cancel(task, force=True)

  def _resources(self, call: worker.Call, machines: Any) -> dict[str, Any]:
    """Returns what a run takes of a machine; raises if no machine has it."""
    able = [each for each in machines if each.get("GPU", 0.0) >= call.num_gpus]
    able = [each for each in able if each.get("TPU") or not call.uses_tpu]
    if not able:  # Ray would wait for ever.
      raise errors.UsageError(
        f"no machine of the cluster has what a run needs: {call.num_gpus} GPUs "
        f"(runtime.num_gpus){' and a TPU' if call.uses_tpu else ''}."
      )
    cores = min(int(each.get("CPU", 1)) for each in able)
    # All chips of a machine: a program cannot have a part of them.
    chips = min(each["TPU"] for each in able) if call.uses_tpu else 0
    return {
      "num_cpus": max(1, cores // self._jobs),
      "num_gpus": call.num_gpus,
      "resources": {"TPU": chips} if chips else {},
    }


def _work_on_cluster(call: worker.Call, cores: int) -> str:
  """Does a call in a new process of Ray, which does not tell which cores."""
  os.environ["TF_NUM_INTRAOP_THREADS"] = str(cores)
  return worker.work(call)


Executor = Local | Ray


def make(jobs: int = 1, ray_address: str = "") -> Executor:
  """Returns an executor: on the cluster at an address, or else here."""
  return Ray(ray_address, jobs) if ray_address else Local(jobs)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepRun:
  """A run of a study, in its directory, and what trains it.

  `about` is the content of `run.json`, `cost` in any unit, for the time left.
  """

  name: str
  directory: worker.RunDirectory
  config: Any
  about: Mapping[str, Any]
  call: worker.Call
  cost: float = 1.0

  def begin(self) -> None:
    self.directory.begin(self.about, self.config.as_dict())


def results_of(runs: Sequence[SweepRun]) -> dict[str, dict[str, Any]]:
  """Returns the results of the finished runs by name."""
  found = ((run.name, run.directory.read_result()) for run in runs)
  return {name: result for name, result in found if result is not None}


def execute(
  runs: Sequence[SweepRun],
  executor: Executor,
  console: rich_console.Console,
  summarize: Callable[[Mapping[str, Any]], str],
) -> dict[str, str]:
  """Executes the runs that are not finished; returns why some failed.

  Their progress is shown; `summarize` sums up a `result.json` in a few words.
  """
  finished, failures = results_of(runs), {}
  waiting = {run.name: run for run in runs if run.name not in finished}
  for run in waiting.values():
    run.begin()
  costs = {run.name: run.cost for run in runs}
  with progress_lib.Progress(console, costs) as shown:
    for name, result in finished.items():
      shown.end(name, f"{summarize(result)} (finished before)", counts=False)
    seen = {n: run.directory.read_progress() for n, run in waiting.items()}

    def tick() -> None:
      for name in waiting:
        now = waiting[name].directory.read_progress()
        if now != seen[name]:
          seen[name] = now
          shown.step(name, progress_lib.status_of(now))

    calls = {name: run.call for name, run in waiting.items()}
    try:
      # Closed at once if it is interrupted: that ends the processes.
      with contextlib.closing(executor.run(calls, tick)) as ended:
        for name, error in ended:
          run = waiting.pop(name)
          if error:
            failures[name] = error
            why = f"failed: {error}; see {run.directory.log_file}"
            shown.end(name, why, counts=False)
          else:
            result = run.directory.read_result() or {}
            shown.end(name, f"{summarize(result)} ({result['seconds']:.0f} s)")
    except KeyboardInterrupt:
      shown.say("interrupted; run the same command again to resume")
      raise
  return failures
