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
import shutil
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
    workers: How many processes train together.
    damaged: The damaged checkpoint that no process has seen yet, if any.
  """

  directory: pathlib.Path
  arguments: list[str]
  rng: random.Random
  seconds: float
  sound: dict[str, bytes]
  poisoned: dict[str, bytes]
  workers: int = 1
  damaged: str = ""

  @property
  def model_dir(self) -> pathlib.Path:
    return self.directory / "model"

  def train(self, *more: str, **kwargs: Any) -> fault_process.Training:
    arguments = [*self.arguments, *more]
    return fault_process.Training(arguments, workers=self.workers, **kwargs)

  def train_until_saved(self, count: int) -> "Answer | None":
    """Kills a process once there are checkpoints; None if there are some."""
    if len(self.listed()) >= count:
      return None
    process = self.train()
    if process.wait_until(lambda _: len(self.listed()) >= count):
      process.send(signal.SIGKILL)
    words = f"killed with {count} checkpoint(s)"
    return Answer(words, process.end(), False, "", process)

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
  if run.damaged:
    return Answer("the one before is not yet found", None, False)
  first = run.train_until_saved(2)
  if first and first.status != -9:
    return first
  status = first.status if first else None
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
  return Answer(f"{path.name}, byte {place}", status, True)


flip_a_bit = functools.partial(_damage, how="flip")
cut_a_checkpoint = functools.partial(_damage, how="cut")


def _with_shard(
  run: Run,
  hurt: Callable[[pathlib.Path], None],
  texts: Collection[str],
) -> Answer:
  """Damages a shard while it is read; restores it after the process."""
  name = run.rng.choice(sorted(run.sound))
  path = run.directory / "data" / name
  words, is_time = _line(
    run, "compiled and made the first step", "train | step"
  )
  process = run.train()
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

  return _with_shard(run, hurt, ["the loss is nan"])


def remove_a_shard(run: Run) -> Answer:
  """A shard vanishes while the run reads: it ends and names the file."""
  return _with_shard(run, pathlib.Path.unlink, [])


def break_a_shard(run: Run) -> Answer:
  """A shard breaks while the run reads: it ends and names the file."""

  def hurt(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[run.rng.randrange(len(content))] ^= 1 << run.rng.randrange(8)
    path.write_bytes(content)

  return _with_shard(run, hurt, [])


def _refused(run: Run, words: str, text: str, *more: str) -> Answer:
  """Starts what must be refused in one line, without writing anything."""
  before = _content(run)
  process = run.train(*more)
  status = process.end()
  said = [line for line in process.lines if line.startswith("error: ")]
  wrong = ""
  if status != 2 or len(said) != 1 or process.says("Traceback"):
    wrong = f"status {status}, {said or process.lines[-1:]}"
  elif text not in said[0]:
    wrong = f"it does not say {text}: {said[0]}"
  elif changed := _content(run) ^ before:
    wrong = f"it has changed {', '.join(sorted(dict(changed)))}"
  return Answer(words, status, True, wrong, process)


def _content(run: Run) -> set[tuple[str, bytes]]:
  """Returns the files of a run, but for the lock that a killed one leaves."""
  paths = [p for p in run.model_dir.rglob("*") if p.is_file()]
  return {(p.name, p.read_bytes()) for p in paths if p.name != "run.lock"}


def change_the_run(run: Run) -> Answer:
  """Another config on the way: it is refused, and the field is named."""
  changed = run.rng.choice(
    (
      "task.sharing.mode=none",
      "task.seed=3",
      "task.train_data.global_batch_size=16",
      "task.validation_data.global_batch_size=16",
      "trainer.optimizer_config.optimizer.type=lamb",
      "trainer.optimizer_config.ema.average_decay=0.9",
      "trainer.optimizer_config.learning_rate.polynomial.power=2",
      "runtime.mixed_precision_dtype=bfloat16",
    )
  )
  first = run.train_until_saved(1)
  if first and first.status != -9:
    return first
  # A recipe sets the fields of `swe`; without it they are left as they are.
  override = f"--params_override={changed}"
  if "mode=none" in changed:
    override += ",task.sharing.recipe=''"
  field = changed.partition("=")[0].removesuffix("type")
  return _refused(run, changed, field, override)


def start_another(run: Run) -> Answer:
  """A second process in the same directory is refused; the first is killed."""
  process = run.train()
  words, is_time = _line(run, "compiled and made the first step")
  if not process.wait_until(is_time):
    return Answer(words, process.end(), False, "", process)
  other = fault_process.Training(run.arguments)
  status = other.end()
  alive = process.wait_until(lambda _: True)
  process.send(signal.SIGKILL)
  wrong = ""
  if alive and (status != 2 or not other.says("another process is working")):
    wrong = f"status {status}: {other.lines[-1:]}"
  return Answer(words, process.end(), alive, wrong, process)


def lose_the_state(run: Run) -> Answer:
  """The file that lists the checkpoints is lost; they are found, and said."""
  first = run.train_until_saved(1)
  if first and first.status != -9:
    return first
  state = run.model_dir / "checkpoint"
  content = run.rng.choice((None, "", "garbage {"))
  state.unlink()
  if content is not None:
    state.write_text(content)
  moment = _line(run, "compiled and made the first step", "saved checkpoint to")
  answer = _signal(run, signal.SIGKILL, moment, (-9,))
  assert answer.process is not None
  wrong = answer.wrong
  if not answer.process.says("was lost or lists what is not here"):
    wrong = wrong or "nothing was said about the lost state"
  moment_words = f"{content!r}, then killed {answer.moment}"
  return dataclasses.replace(answer, moment=moment_words, hit=True, wrong=wrong)


def other_shards(run: Run) -> Answer:
  """Between two processes a shard is lost, or two are exchanged: refused."""
  first = run.train_until_saved(1)
  if first and first.status != -9:
    return first
  one, other = run.rng.sample(sorted(run.sound), 2)
  data = run.directory / "data"
  how = run.rng.choice(("lost", "exchanged"))
  if how == "lost":
    (data / one).unlink()
  else:
    (data / one).write_bytes(run.sound[other])
    (data / other).write_bytes(run.sound[one])
  answer = _refused(run, f"{one} {how}", "data.train_data")
  for name in (one, other):
    (data / name).write_bytes(run.sound[name])
  return answer


def remove_a_directory(run: Run) -> Answer:
  """Data or the run's own directory vanish: one line, or it ends well."""
  place = run.directory / run.rng.choice(("data", "model"))
  moved = run.directory / "moved"
  words, is_time = _line(
    run, "compiled and made the first step", "train | step"
  )
  process = run.train()
  hit = process.wait_until(is_time)
  place.rename(moved)
  status = process.end()
  if place.name == "data":
    moved.rename(place)
  else:  # It is gone for good; the run starts over.
    shutil.rmtree(moved)
    run.damaged = ""
  wrong = _ends_with_a_line(process, status, [place.name])
  return Answer(f"{words}, {place.name}", status, hit, wrong, process)


# About how many of 150 faults are of each kind.
KINDS: dict[str, tuple[Callable[[Run], Answer], int]] = {
  "kill": (kill, 24),
  "kill_while_saving": (kill_while_saving, 14),
  "kill_in_the_untie": (kill_in_the_untie, 9),
  "terminate": (terminate, 12),
  "interrupt": (interrupt, 8),
  "fill_the_disk": (fill_the_disk, 10),
  "flip_a_bit": (flip_a_bit, 7),
  "cut_a_checkpoint": (cut_a_checkpoint, 7),
  "poison": (poison, 6),
  "remove_a_shard": (remove_a_shard, 4),
  "break_a_shard": (break_a_shard, 4),
  "change_the_run": (change_the_run, 15),
  "start_another": (start_another, 8),
  "lose_the_state": (lose_the_state, 10),
  "other_shards": (other_shards, 7),
  "remove_a_directory": (remove_a_directory, 5),
}
# A shard that breaks or a full disk ends several workers with TensorFlow's own
# words (docs/errors.md), and their answer to a signal has a test of its own.
FOR_WORKERS = (
  "kill",
  "kill_while_saving",
  "kill_in_the_untie",
  "flip_a_bit",
  "cut_a_checkpoint",
  "change_the_run",
  "lose_the_state",
  "other_shards",
)
