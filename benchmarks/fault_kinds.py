"""The faults of a campaign: what is done to a run, and how it may respond.

A kind of fault is a function of a `Run`. It starts at most one process, harms
it or the files of the run, and returns what happened.
"""

from collections.abc import Callable, Collection
import dataclasses
import functools
import os
import pathlib
import random
import re
import signal
from typing import Any

from benchmarks import fault_process

STEPS, TAU, LOOP, SAVE_EVERY = 20, 9, 2, 2
_DATA, _INDEX = ".data-00000-of-00001", ".index"
_REPEATED = ("saved checkpoint to", "train | step")
_FOOTER = 48  # The end of an index has padding, where a bit does not matter.


@dataclasses.dataclass
class Run:
  """A run that faults happen to.

  Attributes:
    directory: Has `model`, the run itself, and `data`, its shards.
    arguments: The flags of `swe train`.
    rng: Draws moments and places.
    seconds: How long an undisturbed process takes.
    sound: The content of every shard.
    poisoned: The same, with a NaN weight in one example of each.
    damaged: The damaged checkpoint that no process has seen yet, if any.
  """

  directory: pathlib.Path
  arguments: list[str]
  rng: random.Random
  seconds: float
  sound: dict[str, bytes]
  poisoned: dict[str, bytes]
  damaged: str = ""

  @property
  def model_dir(self) -> pathlib.Path:
    return self.directory / "model"

  def train(self, **kwargs: Any) -> fault_process.Training:
    return fault_process.Training(self.arguments, **kwargs)

  def written(self) -> set[str]:
    """Returns the checkpoints that exist under a final name."""
    return {path.stem for path in self.model_dir.glob("ckpt-*.index")}

  def listed(self) -> list[str]:
    """Returns the checkpoints that TensorFlow would find, oldest first."""
    state = self.model_dir / "checkpoint"
    if not state.exists():
      return []
    found = re.findall(r'^all_model.*"(.*)"$', state.read_text(), re.MULTILINE)
    return [os.path.basename(path) for path in found]


@dataclasses.dataclass(frozen=True)
class Answer:
  """What a fault led to.

  Attributes:
    moment: When it happened, in words.
    status: How the process ended; None if it hung.
    hit: Whether it happened before the process was done.
    wrong: What went wrong; empty if all is as designed.
    process: The process; None if there was none.
  """

  moment: str
  status: int | None
  hit: bool
  wrong: str = ""
  process: fault_process.Training | None = None


Moment = tuple[str, Callable[[fault_process.Training], bool]]


def _any_moment(run: Run) -> Moment:
  """Draws a moment: a time, a line of output, or a file that appears."""
  choices = (_time, _time, _line, _file)
  return run.rng.choice(choices)(run)


def _time(run: Run) -> Moment:
  seconds = run.rng.uniform(0, run.seconds)
  return f"after {seconds:.2f} s", lambda process: process.age > seconds


def _line(run: Run, *texts: str) -> Moment:
  text = run.rng.choice(
    texts
    or (
      "Resuming the training input",
      "compiled and made the first step",
      "untied ",
      "saved checkpoint to",
      "train | step",
    )
  )
  number = run.rng.randint(1, 4)
  delay = run.rng.uniform(0, 0.05)
  seen: list[float] = []

  def is_time(process: fault_process.Training) -> bool:
    count = sum(text in line for line in list(process.lines))
    # Do not wait for a repetition of a text that is printed only once.
    wanted = number if text in _REPEATED else 1
    if count >= wanted and not seen:
      seen.append(process.age)
    return bool(seen) and process.age >= seen[0] + delay

  return f"{delay * 1000:.0f} ms after line {number} of {text!r}", is_time


def _file(run: Run, *names: str) -> Moment:
  """Draws the moment when an unfinished file exists."""
  name = run.rng.choice(names or ("*temp*", "*.index", "params.yaml"))
  number = run.rng.randint(1, 6)
  delay = run.rng.choice((0.0, 0.0, run.rng.uniform(0, 0.01)))
  before = _files_like(run, name)
  seen: list[tuple[str, int, int]] = []
  since: list[float] = []

  def is_time(process: fault_process.Training) -> bool:
    for each in _files_like(run, name) - before - set(seen):
      seen.append(each)
    if len(seen) >= (1 if name == "params.yaml" else number) and not since:
      since.append(process.age)
    return bool(since) and process.age >= since[0] + delay

  return f"{delay * 1000:.0f} ms after file {number} like {name}", is_time


def _files_like(run: Run, pattern: str) -> set[tuple[str, int, int]]:
  found = set()
  for path in run.model_dir.glob(pattern):
    try:
      status = path.stat()
    except OSError:
      continue
    found.add((path.name, status.st_ino, status.st_mtime_ns))
  return found


def _signal(
  run: Run,
  number: int,
  moment: Moment,
  statuses: Collection[int | None],
) -> Answer:
  words, is_time = moment
  before = run.written()
  process = run.train()
  hit = process.wait_until(is_time)
  if hit:
    process.send(number)
  status = process.end()
  # It may have finished just when the signal was sent.
  hit = hit and status != 0
  wrong = ""
  if status not in (*statuses, 0):
    wrong = f"status {status}"
  elif status == 75:
    wrong = _wrong_after_saving(run, process, before)
  return Answer(words, status, hit, wrong, process)


def _wrong_after_saving(
  run: Run, process: fault_process.Training, before: set[str]
) -> str:
  text = "\n".join(process.lines)
  steps = [
    int(n) for n in re.findall(r"saved a checkpoint at step (\d+);", text)
  ]
  if len(steps) != 1:
    return "it did not say which checkpoint it saved"
  if run.listed()[-1:] != [f"ckpt-{steps[0]}"]:
    return f"it said step {steps[0]}, but the last is {run.listed()[-1:]}"
  forgotten = run.written() - before - set(run.listed())
  return f"{', '.join(forgotten)} is not listed" if forgotten else ""


def kill(run: Run) -> Answer:
  """SIGKILL at any moment."""
  return _signal(run, signal.SIGKILL, _any_moment(run), (-9,))


def kill_while_saving(run: Run) -> Answer:
  """SIGKILL while a checkpoint is written."""
  return _signal(run, signal.SIGKILL, _file(run, "*temp*", "*.index"), (-9,))


def kill_in_the_untie(run: Run) -> Answer:
  """SIGKILL when some of the slots are copied, and others are not."""
  count = run.rng.randint(0, 20)
  process = run.train(kill_after_slots=count)
  status = process.end()
  wrong = "" if status in (-9, 0) else f"status {status}"
  words = f"after the slots of {count} variables"
  return Answer(words, status, status == -9, wrong, process)


def terminate(run: Run) -> Answer:
  """SIGTERM: it saves and ends with 75; before training, it just ends."""
  return _signal(run, signal.SIGTERM, _any_moment(run), (75, -15))


def interrupt(run: Run) -> Answer:
  """SIGINT: like SIGTERM."""
  return _signal(run, signal.SIGINT, _any_moment(run), (75, 130, -2))


def _ends_with_a_line(
  process: fault_process.Training,
  status: int | None,
  texts: Collection[str],
) -> str:
  """Returns what is wrong with a process that had to fail or finish."""
  if status == 0:
    return ""
  said = [line for line in process.lines if line.startswith("error: ")]
  if status != 1 or len(said) != 1 or process.says("Traceback"):
    return f"status {status}, {len(said)} lines of error: {process.lines[-1:]}"
  if not any(text in said[0] for text in texts):
    return f"it does not say {' or '.join(texts)}: {said[0]}"
  return ""


def fill_the_disk(run: Run) -> Answer:
  """No space for a checkpoint, from some moment of training on.

  The limit applies to all that the process writes, and AutoGraph writes source
  files: the sizes are above those, and below that of a checkpoint.
  """
  words, is_time = _line(
    run, "compiled and made the first step", "saved checkpoint to"
  )
  size = run.rng.choice((40_000, 60_000, 90_000))
  process = run.train()
  hit = process.wait_until(is_time)
  process.limit_files(size)
  status = process.end()
  wrong = _ends_with_a_line(
    process, status, ("File too large", "No space left")
  )
  words = f"{words}, files of at most {size} bytes"
  return Answer(words, status, hit and status != 0, wrong, process)


def _damage(run: Run, how: str) -> Answer:
  """Damages the newest checkpoint while no process is running."""
  words, status, process = "between two processes", None, None
  if run.damaged:
    return Answer("the one before is not yet found", None, False)
  if len(run.listed()) < 2:
    process = run.train()
    if process.wait_until(lambda _: len(run.listed()) >= 2):
      process.send(signal.SIGKILL)
    status = process.end()
    words = "between two processes, the first killed with two checkpoints"
    if status != -9:
      return Answer(words, status, False, "", process)
  name = run.listed()[-1]
  path = run.model_dir / f"{name}{run.rng.choice((_DATA, _INDEX))}"
  content = bytearray(path.read_bytes())
  place = run.rng.randrange(len(content) - _FOOTER)
  if how == "flip":
    content[place] ^= 1 << run.rng.randrange(8)
  else:
    del content[place:]
  path.write_bytes(content)
  run.damaged = name
  return Answer(f"{words}, {path.name}, byte {place}", status, True)


flip_a_bit = functools.partial(_damage, how="flip")
cut_a_checkpoint = functools.partial(_damage, how="cut")


def _with_shard(
  run: Run,
  hurt: Callable[[pathlib.Path], None],
  moment: Moment | None,
  texts: Collection[str],
) -> Answer:
  """Damages a shard at a moment; restores it after the process has ended."""
  name = run.rng.choice(sorted(run.sound))
  path = run.directory / "data" / name
  words, hit = "before the process", True
  if moment is None:
    hurt(path)
  process = run.train()
  if moment is not None:
    words, is_time = moment
    hit = process.wait_until(is_time)
    hurt(path)
  status = process.end()
  path.write_bytes(run.sound[name])
  wrong = _ends_with_a_line(process, status, [*texts, name])
  return Answer(f"{words}, {name}", status, hit and status != 0, wrong, process)


def poison(run: Run) -> Answer:
  """A loss of NaN: it ends, and no checkpoint has NaN in it."""

  def hurt(path: pathlib.Path) -> None:
    path.write_bytes(run.poisoned[path.name])

  return _with_shard(run, hurt, None, ["the loss is nan"])


def remove_a_shard(run: Run) -> Answer:
  """A shard vanishes while the run reads: it ends and names the file."""
  moment = _line(run, "compiled and made the first step", "train | step")
  return _with_shard(run, pathlib.Path.unlink, moment, [])


def break_a_shard(run: Run) -> Answer:
  """A shard breaks while the run reads: it ends and names the file."""

  def hurt(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[run.rng.randrange(len(content))] ^= 1 << run.rng.randrange(8)
    path.write_bytes(content)

  moment = _line(run, "compiled and made the first step", "train | step")
  return _with_shard(run, hurt, moment, [])


# About how many of a hundred faults are of each kind.
KINDS: dict[str, tuple[Callable[[Run], Answer], int]] = {
  "kill": (kill, 24),
  "kill_while_saving": (kill_while_saving, 14),
  "kill_in_the_untie": (kill_in_the_untie, 6),
  "terminate": (terminate, 10),
  "interrupt": (interrupt, 8),
  "fill_the_disk": (fill_the_disk, 10),
  "flip_a_bit": (flip_a_bit, 7),
  "cut_a_checkpoint": (cut_a_checkpoint, 7),
  "poison": (poison, 6),
  "remove_a_shard": (remove_a_shard, 4),
  "break_a_shard": (break_a_shard, 4),
}
