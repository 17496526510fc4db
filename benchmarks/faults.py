r"""A campaign of faults, to check that no work of a run is lost.

    python -m benchmarks.faults --seed=1 --faults=100 --output=faults.jsonl
    python -m benchmarks.faults --seed=1 --only=7   # run 7 again

A tiny BERT is trained undisturbed once: by SWE, by each recipe, and by SWE on
two workers. Then runs like it suffer several faults each, in processes that are
started again as a user would: killed at any moment, even in the middle of a
checkpoint or of untying; interrupted; out of disk space; with a checkpoint that
is truncated or has a wrong bit, or a lost list of checkpoints; with a NaN loss;
with a shard that vanishes, breaks or is another; without their directory; with
another config; with a second process. When such a run has ended, its weights,
its slots and its random state must be those of the undisturbed run, bit for
bit. On the way every process must end with the documented status and line, and
`checkpoint` must list nothing that is not whole.

Prints one line of JSON per fault, and a summary. The exit status is 1 if a
fault was not survived.
"""

import collections
from collections.abc import Iterator
from concurrent import futures
import dataclasses
import json
import os
import pathlib
import platform
import random
import shutil
import sys
import tempfile
import threading
import time
from typing import Any

from absl import app
from absl import flags
import yaml

from benchmarks import fault_kinds
from benchmarks import fault_process

_SEED = flags.DEFINE_integer("seed", 1, "Decides about all faults.")
_FAULTS = flags.DEFINE_integer("faults", 100, "How many.", lower_bound=1)
_MINUTES = flags.DEFINE_float("minutes", 600, "No run is started after them.")
_ONLY = flags.DEFINE_integer("only", None, "Only the run of this number.")
_JOBS = flags.DEFINE_integer("jobs", 2, "Runs at a time.", lower_bound=1)
_KINDS = flags.DEFINE_list(
  "kinds", list(fault_kinds.KINDS), "Only faults of these kinds."
)
_OUTPUT = flags.DEFINE_string("output", None, "A file for the lines too.")
_SUMMARY = flags.DEFINE_string("summary", None, "A file for the summary.")
_KEEP = flags.DEFINE_string(
  "keep", None, "Runs that did not survive are moved to this directory."
)

_PER_RUN = 6
_WORKERS = "two_workers"
# The `task.sharing` of a run; runs take them in turn.
_VARIETIES: dict[str, dict[str, Any]] = {
  "swe": {"untie_step": fault_kinds.TAU},
  "one_loop": {"recipe": "one_loop"},
  _WORKERS: {"untie_step": fault_kinds.TAU},
  "few_loops": {"recipe": "few_loops"},
}


@dataclasses.dataclass
class Fault:
  """One fault and its outcome; a line of the output.

  Attributes:
    run: The number of the run.
    variety: See `_VARIETIES`.
    number: The number of the fault in its run.
    kind: See `fault_kinds.KINDS`.
    moment: When and where.
    status: How the process ended.
    seconds: How long the process ran.
    step: The newest checkpoint afterwards.
    wrong: What went wrong; empty if nothing did.
  """

  run: int
  variety: str
  number: int
  kind: str
  moment: str
  status: int | None
  seconds: float
  step: str
  wrong: str


@dataclasses.dataclass(frozen=True)
class Undisturbed:
  """The run that all others of its variety are compared with.

  Attributes:
    checkpoint: Its last checkpoint.
    seconds: How long it took.
    sound: The content of its shards.
    poisoned: The same, with a NaN weight in each.
  """

  checkpoint: str
  seconds: float
  sound: dict[str, bytes]
  poisoned: dict[str, bytes]


def _arguments(directory: pathlib.Path, variety: str) -> list[str]:
  """Writes the configuration of a run; returns the flags of `swe train`."""
  from tests import tiny

  config = tiny.overrides(str(directory / "data" / "*.tfrecord"))
  config["task"]["sharing"] = dict(_VARIETIES[variety])
  if variety == _WORKERS:
    config["runtime"] = {"distribution_strategy": "multi_worker_mirrored"}
  # One file after the other, so that each is opened every other step.
  config["task"]["train_data"]["cycle_length"] = 1
  encoder = config["task"]["model"]["encoder"]["any"]
  encoder |= {"hidden_size": 16, "dropout_rate": 0.1}
  if variety == "few_loops":
    encoder["num_layers"] = 4
  config["trainer"] |= {
    "train_steps": fault_kinds.STEPS,
    "steps_per_loop": fault_kinds.LOOP,
    "summary_interval": fault_kinds.LOOP,
    "checkpoint_interval": fault_kinds.SAVE_EVERY,
    "validation_interval": fault_kinds.STEPS,
  }
  path = directory / "config.yaml"
  path.write_text(yaml.safe_dump(config))
  return [
    "--experiment=swe/bert_pretraining",
    "--mode=train",
    f"--model_dir={directory / 'model'}",
    f"--config_file={path}",
  ]


def _variety(run: int) -> str:
  return list(_VARIETIES)[run % len(_VARIETIES)]


def _count(variety: str) -> int:
  return 2 if variety == _WORKERS else 1


def _poisoned(path: pathlib.Path) -> bytes:
  """Returns a shard with a NaN weight in one of its examples."""
  import tensorflow as tf

  with tempfile.NamedTemporaryFile() as file:
    with tf.io.TFRecordWriter(file.name) as writer:
      for number, record in enumerate(tf.data.TFRecordDataset(str(path))):
        example = tf.train.Example.FromString(record.numpy())
        if number == 3:
          weights = example.features.feature["masked_lm_weights"]
          weights.float_list.value[0] = float("nan")
        writer.write(example.SerializeToString())
    return pathlib.Path(file.name).read_bytes()


def _train_undisturbed(directory: pathlib.Path, variety: str) -> Undisturbed:
  from tests import tiny

  data = directory / "data"
  data.mkdir(parents=True)
  tiny.write_records(str(data), per_file=16)
  process = fault_process.Training(
    _arguments(directory, variety), workers=_count(variety)
  )
  status = process.end()
  if status != 0:
    sys.exit("\n".join([*process.lines, f"status {status} without a fault"]))
  paths = sorted(data.iterdir())
  return Undisturbed(
    checkpoint=str(directory / "model" / f"ckpt-{fault_kinds.STEPS}"),
    seconds=process.seconds,
    sound={path.name: path.read_bytes() for path in paths},
    poisoned={path.name: _poisoned(path) for path in paths},
  )


def _kinds_of(run: int) -> list[str]:
  """Returns the kinds of a run's faults; a run unties once, so that is first.

  A deck has each kind as often as it should occur in 150 faults, and runs draw
  their faults from one deck after another; runs of several workers have decks
  of their own.
  """
  several = _variety(run) == _WORKERS
  cards = [
    kind
    for kind, (_, count) in fault_kinds.KINDS.items()
    if kind in _KINDS.value and (not several or kind in fault_kinds.FOR_WORKERS)
    for _ in range(count)
  ]
  before = [_variety(each) == _WORKERS for each in range(run)].count(several)
  drawn = []
  for place in range(
    before * _PER_RUN, (before + 1) * _PER_RUN if cards else 0
  ):
    deck, card = divmod(place, len(cards))
    order = list(cards)
    random.Random(f"{_SEED.value} {deck} {several}").shuffle(order)
    drawn.append(order[card])
  return sorted(drawn, key=lambda kind: kind != "kill_in_the_untie")


def _why_unreadable(prefix: str) -> str:
  """Returns why a checkpoint cannot be read to its end; empty if it can.

  This is not the check of the code under test, though it is similar.
  """
  import tensorflow as tf

  try:
    reader = tf.train.load_checkpoint(prefix)
    for key in reader.get_variable_to_shape_map():
      reader.get_tensor(key)
  except Exception as error:  # Whatever it is.
    return f"{pathlib.Path(prefix).name}: {type(error).__name__}"
  return ""


def _stamp(run: fault_kinds.Run, name: str) -> tuple[int, ...]:
  """Returns when the files of a checkpoint were written."""
  paths = sorted(run.model_dir.glob(f"{name}.*"))
  return tuple(path.stat().st_mtime_ns for path in paths)


def _unfinished(
  run: fault_kinds.Run, left_alone: dict[str, tuple[int, ...]]
) -> str:
  """Returns what is taken for finished though it is not.

  Args:
    run: The run.
    left_alone: Checkpoints that the campaign has damaged, with their stamps;
      they stay until they are written again.
  """
  ours = {n for n, stamp in left_alone.items() if stamp == _stamp(run, n)}
  # TensorFlow writes an index in place and lists it when it is whole, so a kill
  # may leave half of one that is not listed. An older one may still be listed
  # though it was just deleted.
  listed = run.listed()
  for name in sorted({*listed[-1:], *(run.written() & {*listed})} - ours):
    if why := _why_unreadable(str(run.model_dir / name)):
      return why
  params = run.model_dir / "params.yaml"
  if params.exists() and not isinstance(
    yaml.unsafe_load(params.read_text()), dict
  ):
    return "params.yaml"
  return ""


def _difference(checkpoint: str, other: str) -> str:
  """Returns what differs between two checkpoints; empty if nothing does."""
  from swe_tf.analysis import difference

  if why := _why_unreadable(other):
    return why
  parts = difference.compare_checkpoints(checkpoint, other)
  names = [
    name
    for part in parts
    for name in (*part.differ, *part.only)
    if name != "save_counter"  # It counts the checkpoints of a run.
  ]
  same = sum(part.count for part in parts)
  return f"{len(names)} of {same} differ: {names[0]}" if names else ""


class _Survivor:
  """Takes one run through its faults to its end."""

  def __init__(
    self, number: int, directory: pathlib.Path, undisturbed: Undisturbed
  ):
    self._number, self._variety = number, _variety(number)
    self._undisturbed = undisturbed
    data = directory / "data"
    data.mkdir(parents=True)
    for name, content in undisturbed.sound.items():
      (data / name).write_bytes(content)
    self._run = fault_kinds.Run(
      directory=directory,
      arguments=_arguments(directory, self._variety),
      workers=_count(self._variety),
      rng=random.Random(f"{_SEED.value} run {number}"),
      seconds=undisturbed.seconds,
      sound=undisturbed.sound,
      poisoned=undisturbed.poisoned,
    )
    self._damage: Fault | None = None
    self._left_alone: dict[str, tuple[int, ...]] = {}
    self.logs: list[str] = []

  def faults(self, still_wanted) -> Iterator[Fault]:
    """Causes the faults, then trains to the end; yields those that hit."""
    hit: list[Fault] = []
    status = None
    for number, kind in enumerate(_kinds_of(self._number)):
      if not still_wanted(len(hit)):
        break
      answer = fault_kinds.KINDS[kind][0](self._run)
      status = answer.status
      fault = self._fault(number, kind, answer)
      if answer.hit or fault.wrong:
        hit.append(fault)
      if status == 0:
        break
    if status != 0:
      process = self._run.train()
      status = process.end()
      end = fault_kinds.Answer("at the end", status, True, process=process)
      fault = self._fault(len(hit), "none", end)
      if status != 0:
        fault.wrong = f"status {status}: {process.lines[-1:]}"
      if fault.wrong:
        hit.append(fault)
    if self._damage is not None:
      self._damage.wrong = "nothing was said about the damage"
    last = str(self._run.model_dir / f"ckpt-{fault_kinds.STEPS}")
    if wrong := _difference(self._undisturbed.checkpoint, last):
      for fault in hit:
        fault.wrong = fault.wrong or f"at the end of the run {wrong}"
    yield from hit

  def _fault(self, number: int, kind: str, answer: fault_kinds.Answer) -> Fault:
    process = answer.process
    if answer.hit and kind in ("flip_a_bit", "cut_a_checkpoint"):
      stamp = _stamp(self._run, self._run.damaged)
      self._left_alone[self._run.damaged] = stamp
    if process is not None:
      self.logs += [f"--- {number} {kind}, {answer.moment}", *process.lines]
      if self._damage is not None and process.says(" is damaged and not used"):
        self._run.damaged, self._damage = "", None
    fault = Fault(
      run=self._number,
      variety=self._variety,
      number=number,
      kind=kind,
      moment=answer.moment,
      status=answer.status,
      seconds=round(process.seconds, 1) if process else 0.0,
      step=self._run.listed()[-1] if self._run.listed() else "",
      wrong=answer.wrong or _unfinished(self._run, self._left_alone),
    )
    if self._run.damaged and self._damage is None:
      self._damage = fault
    return fault


class _Campaign:
  """Counts the faults of runs that go on in parallel."""

  def __init__(self, directory: pathlib.Path):
    self._directory = directory
    self._lock = threading.Lock()
    self._next_run = 0
    self._end = time.monotonic() + 60 * _MINUTES.value
    self.found: list[Fault] = []
    self._undisturbed: dict[str, Undisturbed] = {}

  def work(self) -> None:
    """Makes runs until there are enough faults."""
    while True:
      with self._lock:
        run, self._next_run = self._next_run, self._next_run + 1
      if len(self.found) >= _FAULTS.value or time.monotonic() > self._end:
        return
      self.make(run)

  def make(self, run: int) -> None:
    """Makes one run and prints its faults."""
    place = self._directory / f"run_{run}"
    variety = _variety(run)
    with self._lock:
      if variety not in self._undisturbed:
        where = self._directory / variety
        self._undisturbed[variety] = _train_undisturbed(where, variety)
    survivor = _Survivor(run, place, self._undisturbed[variety])
    still_wanted = lambda count: (
      _ONLY.value is not None or len(self.found) + count < _FAULTS.value
    )
    faults = list(survivor.faults(still_wanted))
    with self._lock:
      self.found += faults
      for fault in faults:
        line = json.dumps(dataclasses.asdict(fault))
        print(line, flush=True)
        if _OUTPUT.value:
          with open(_OUTPUT.value, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    if _KEEP.value and any(fault.wrong for fault in faults):
      (place / "log.txt").write_text("\n".join(survivor.logs))
      shutil.copytree(place, f"{_KEEP.value}/run_{run}", dirs_exist_ok=True)
    shutil.rmtree(place)


def _summary(faults: list[Fault], seconds: float) -> dict[str, Any]:
  kinds = collections.Counter(fault.kind for fault in faults)
  varieties = collections.Counter(fault.variety for fault in faults)
  wrong = [fault for fault in faults if fault.wrong]
  statuses = collections.Counter(str(fault.status) for fault in faults)
  return {
    "command": f"python -m benchmarks.faults --seed={_SEED.value} "
    f"--faults={_FAULTS.value} --jobs={_JOBS.value} --minutes={_MINUTES.value}",
    "faults": len(faults),
    "survived": len(faults) - len(wrong),
    "runs": len({fault.run for fault in faults}),
    "varieties": dict(sorted(varieties.items())),
    "kinds": dict(sorted(kinds.items())),
    "statuses": dict(sorted(statuses.items())),
    "minutes": round(seconds / 60, 1),
    "python": platform.python_version(),
    "wrong": [dataclasses.asdict(fault) for fault in wrong],
  }


def main(_):
  unknown = set(_KINDS.value) - set(fault_kinds.KINDS)
  if unknown:
    sys.exit(f"--kinds: there is no {', '.join(unknown)}.")
  start = time.monotonic()
  with tempfile.TemporaryDirectory() as name:
    # Killed processes leave behind what AutoGraph has written.
    os.environ["TMPDIR"] = name
    fault_process.start_server()
    campaign = _Campaign(pathlib.Path(name))
    if _ONLY.value is not None:
      campaign.make(_ONLY.value)
    else:
      with futures.ThreadPoolExecutor(_JOBS.value) as pool:
        for worker in [pool.submit(campaign.work) for _ in range(_JOBS.value)]:
          worker.result()
  summary = _summary(campaign.found, time.monotonic() - start)
  text = json.dumps(summary, indent=2)
  print(text)
  if _SUMMARY.value:
    pathlib.Path(_SUMMARY.value).write_text(text + "\n", "utf-8")
  sys.exit(int(bool(summary["wrong"])))


if __name__ == "__main__":
  app.run(main)
