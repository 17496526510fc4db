"""Executes runs in their directories: in processes here, or on a Ray cluster.

`Local` and `Ray` have `run(runs, tick)`: it executes runs, calls `tick` about
every second, and yields the name of each run that ends and why, if it failed.
Whatever happens to a process, its run resumes from its last checkpoint when it
is called again. Imports no TensorFlow.
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

Ended = Generator[tuple[str, str], None, None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepRun:
  """A run of a study, in its directory, and what trains it.

  `about` is the content of `run.json`; `function`, a `module:function`, is
  called with a `worker.Job` and the arguments; `cost` is in any unit, for the
  time left.
  """

  name: str
  directory: worker.RunDirectory
  config: Any
  about: Mapping[str, Any]
  function: str
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  cost: float = 1.0

  def begin(self) -> None:
    self.directory.begin(self.about, self.config.as_dict())

  @property
  def work(self) -> tuple[str, str, Mapping[str, Any]]:
    """The arguments of `worker.work`: what another process is told."""
    return self.function, str(self.directory.path), self.arguments


class Local:
  """Processes on this machine, `jobs` at a time, which divide its cores."""

  def __init__(self, jobs: int = 1):
    self._shares = [share_of_cores(index, jobs) for index in range(jobs)]

  def run(self, runs: Sequence[SweepRun], tick: Callable[[], Any]) -> Ended:
    """Executes runs. If it is interrupted, the processes end at once."""
    # A fork would inherit TensorFlow's threads half alive.
    context = multiprocessing.get_context("spawn")
    waiting, free = list(runs), list(self._shares)
    running: dict[Any, tuple[str, Any, list[int]]] = {}
    try:
      while waiting or running:
        while waiting and free:
          run, cores = waiting.pop(0), free.pop(0)
          answer, sender = context.Pipe(duplex=False)
          process = context.Process(
            target=_work_here, args=(run.work, cores, sender)
          )
          process.start()
          sender.close()  # So that its end is seen here.
          running[process] = run.name, answer, cores
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


def _work_here(work: Any, cores: list[int], answer) -> None:
  # Ctrl-C is for the parent, which then ends this process.
  signal.signal(signal.SIGINT, signal.SIG_IGN)

  def end_with_parent():
    # If the parent is killed, the next one may resume this very run.
    multiprocessing.parent_process().join()  # type: ignore[union-attr]
    os._exit(1)

  threading.Thread(target=end_with_parent, daemon=True).start()
  if cores:  # Before TensorFlow counts them.
    os.sched_setaffinity(0, cores)
  answer.send(worker.work(*work))


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
        "Ray is not installed: in a clone, pip install '.[ray]'."
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

  def run(self, runs: Sequence[SweepRun], tick: Callable[[], Any]) -> Ended:
    """Executes runs. One whose machine dies continues on another."""
    ray = self._ray
    # A process for each run, as on this machine: max_calls.
    work = ray.remote(max_calls=1, max_retries=_RETRIES)(_work_on_cluster)
    machines = [each["Resources"] for each in ray.nodes() if each["Alive"]]
    running = {}
    for run in runs:
      wanted = self._resources(run.config.runtime, machines)
      task = work.options(**wanted).remote(run.work, wanted["num_cpus"])
      running[task] = run.name
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

  def _resources(self, runtime: Any, machines: Any) -> dict[str, Any]:
    """Returns what a run takes of a machine; raises if no machine has it."""
    gpus, on_tpu = runtime.num_gpus, runtime.distribution_strategy == "tpu"
    able = [each for each in machines if each.get("GPU", 0.0) >= gpus]
    able = [each for each in able if each.get("TPU") or not on_tpu]
    if not able:  # Ray would wait for ever.
      raise errors.UsageError(
        f"no machine of the cluster has what a run needs: {gpus} GPUs "
        f"(runtime.num_gpus){' and a TPU' if on_tpu else ''}."
      )
    cores = min(int(each.get("CPU", 1)) for each in able)
    # All chips of a machine: a program cannot have a part of them.
    chips = min(each["TPU"] for each in able) if on_tpu else 0
    return {
      "num_cpus": max(1, cores // self._jobs),
      "num_gpus": gpus,
      "resources": {"TPU": chips} if chips else {},
    }


def _work_on_cluster(work: Any, cores: int) -> str:
  """Works on a run in a new process of Ray, which does not tell which cores."""
  os.environ["TF_NUM_INTRAOP_THREADS"] = str(cores)
  return worker.work(*work)


Executor = Local | Ray


def make(jobs: int = 1, ray_address: str = "") -> Executor:
  """Returns an executor: on the cluster at an address, or else here."""
  return Ray(ray_address, jobs) if ray_address else Local(jobs)


def results_of(runs: Sequence[SweepRun]) -> dict[str, dict[str, Any]]:
  """Returns the results of the finished runs by name."""
  found = ((run.name, run.directory.read_result()) for run in runs)
  return {name: result for name, result in found if result is not None}


def execute(
  runs: Sequence[SweepRun],
  executor: Executor,
  console: rich_console.Console,
  summarize: Callable[[Mapping[str, Any]], str],
  after_each: Callable[[], Any] = lambda: None,
) -> dict[str, str]:
  """Executes the runs that are not finished; returns why some failed.

  Their progress is shown; `summarize` sums up a `result.json` in a few words,
  and `after_each` is called whenever one has ended.
  """
  finished, failures = results_of(runs), {}
  waiting = {run.name: run for run in runs if run.name not in finished}
  with progress_lib.Progress(console, {r.name: r.cost for r in runs}) as shown:
    for name, result in finished.items():
      shown.end(name, f"{summarize(result)} (finished before)", counts=False)
    for run in waiting.values():
      run.begin()
    seen = {n: run.directory.read_progress() for n, run in waiting.items()}
    fields = {each.name for each in dataclasses.fields(progress_lib.Status)}

    def tick() -> None:
      for name, run in waiting.items():
        now = run.directory.read_progress()
        if now != seen[name]:
          seen[name] = now
          status = {key: now[key] for key in fields & now.keys()}
          shown.step(name, progress_lib.Status(**status))
      shown.tick()

    try:
      todo = list(waiting.values())
      # Closed at once if it is interrupted: that ends the processes.
      with contextlib.closing(executor.run(todo, tick)) as ended:
        for name, error in ended:
          directory = waiting.pop(name).directory
          result = directory.read_result() or {}
          if error:
            failures[name] = error
            text = f"failed: {error}; see {directory.log_file}"
          else:
            text = f"{summarize(result)} ({result['seconds']:.0f} s)"
          shown.end(name, text, counts=not error)
          after_each()
    except KeyboardInterrupt:
      shown.say("interrupted; run the same command again to resume")
      raise
  return failures
