"""Walks through docs/tpu.md on this machine: the guide, without a TPU.

    python -m benchmarks.rehearsal

Runs every command of the page as written, top to bottom, and prints it.
`replacements` lists what is replaced, `LEFT_OUT` what is left out, and why.
The bucket is a directory that the commands see as a file:// URL, and
`benchmarks.fake_gcloud` stands in for gcloud. Both runs of pre-training, on the
"TPU VM" and in two workers, get a SIGTERM and a SIGKILL in each phase; the VM's
also gets an invalid argument, and is killed as if it were out of memory. The
exit status is 1 if a command fails or a run does not end as it should.
"""

from collections.abc import Callable, Iterator, Sequence
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from absl import app
from absl import flags
import markdown_it
import yaml

from swe_tf.data.text import docstrings

_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", None, "Keeps what the commands write here."
)
_GLUE_DIR = flags.DEFINE_string(
  "glue_dir", None, "Files of SST-2; by default they are made up."
)
_ROOT = pathlib.Path(__file__).resolve().parents[1]
_PAGE = _ROOT / "docs" / "tpu.md"
_STEPS, _TAU, _EVERY = 200, 100, 5
# When a run is preempted: twice while it shares, twice afterwards.
_PREEMPTIONS = (
  (15, signal.SIGTERM),
  (45, signal.SIGKILL),
  (_TAU + 15, signal.SIGTERM),
  (_TAU + 45, signal.SIGKILL),
)
# The time that a machine gets between the two signals.
_GRACE_SECONDS = 30
_PATIENCE_SECONDS = 600
LEFT_OUT = {
  "swe doctor tpu": "needs the TPU compiler, the extra tpu-check",
  "pip ": "sets up the machine; the rehearsal runs in what it sets up",
  "--params_override=task.train_data.enable_tf_data_service": (
    "a flag: needs a tf.data service"
  ),
}
_TINY = {
  "task": {
    "model": {
      "encoder": {
        "any": {
          "vocab_size": 128,
          "num_layers": 4,
          "hidden_size": 32,
          "num_attention_heads": 2,
          "intermediate_size": 64,
          "max_position_embeddings": 128,
          "type_vocab_size": 2,
          "initializer_range": 0.18,
        }
      }
    },
    "train_data": {
      "seq_length": 32,
      "max_predictions_per_seq": 5,
      "global_batch_size": 16,
    },
    "validation_data": {
      "seq_length": 32,
      "max_predictions_per_seq": 5,
      "global_batch_size": 16,
    },
    "sharing": {"untie_step": _TAU},
  },
  "runtime": {
    "distribution_strategy": "off",
    "mixed_precision_dtype": "float32",
  },
  "trainer": {
    "train_steps": _STEPS,
    "steps_per_loop": _EVERY,
    "summary_interval": _EVERY,
    "checkpoint_interval": _EVERY,
    "validation_interval": _TAU,
    "validation_steps": 2,
    "max_to_keep": 3,
    "optimizer_config": {
      "learning_rate": {"polynomial": {"initial_learning_rate": 3e-3}},
      "warmup": {"polynomial": {"warmup_steps": 20}},
    },
  },
}


class RehearsalFailed(Exception):
  """Something in the guide does not work."""


def commands() -> Iterator[str]:
  """Yields the commands of the page, with continued lines joined."""
  markdown = markdown_it.MarkdownIt("commonmark").enable("table")
  for token in markdown.parse(_PAGE.read_text(encoding="utf-8")):
    # A block marked `text` is what a command prints.
    if token.type in ("code_block", "fence") and token.info != "text":
      for line in token.content.replace("\\\n", "").splitlines():
        command = re.sub(r"\s+#\s.*", "", line).strip()
        if command:
          yield re.sub(r" {2,}", " ", command)


def left_out(command: str) -> str | None:
  """Returns why a command is not run; None if it is."""
  return next(
    (why for start, why in LEFT_OUT.items() if command.startswith(start)), None
  )


def replacements(work: pathlib.Path) -> dict[str, str]:
  """Returns what replaces the bucket, the hosts and the size of the model."""
  with socket.socket() as one, socket.socket() as other:
    for each in (one, other):
      each.bind(("localhost", 0))
    hosts = [f"localhost:{each.getsockname()[1]}" for each in (one, other)]
  last_file = "--config_file=experiments/table1/large_500k_swe.yaml"
  return {
    "gs://BUCKET": f"file://{work}/bucket",
    "host0:2222": hosts[0],
    "host1:2222": hosts[1],
    "ZONE": "us-west4-a",
    "REPOSITORY": "https://example.com/swe_tf",
    # There is no TPU here, so this is undone in `put_on_cpu`.
    "swe launch $RUN --params_override=$DATA": (
      "swe launch $RUN "
      "--params_override=$DATA,runtime.distribution_strategy=tpu"
    ),
    "runtime.num_gpus=8": "runtime.num_gpus=0",
    "--seq_length=512": "--seq_length=32",
    last_file: f"{last_file} --config_file={work}/tiny.yaml",
    "sleep 60": 'echo "ended with status $status"; sleep 1',
  }


def _stage(work: pathlib.Path) -> None:
  """Fills the bucket with what a user brings: text, a vocabulary, SST-2."""
  bucket = work / "bucket"
  made = docstrings.write_corpus(str(work / "corpus"), 500_000, packages=())
  for part in ("train", "validation"):
    folder = bucket / "text" / part
    folder.mkdir(parents=True)
    text = pathlib.Path(getattr(made, part)).read_text(encoding="utf-8")
    (folder / "docstrings.txt").write_text(text, encoding="utf-8")
  vocab = _ROOT / "experiments" / "small" / "pieces.txt"
  (bucket / "text" / "vocab.txt").write_bytes(vocab.read_bytes())
  glue = bucket / "glue" / "SST-2"
  glue.mkdir(parents=True)
  for name, count in (("train", 96), ("dev", 32), ("test", 32)):
    if _GLUE_DIR.value:
      source = pathlib.Path(_GLUE_DIR.value) / f"{name}.tsv"
      lines = source.read_text(encoding="utf-8").splitlines()[: count + 1]
    else:
      words = ("a dull film", "a fine film")
      rows = (f"{words[i % 2]} , number {i}\t{i % 2}" for i in range(count))
      lines = ["sentence\tlabel", *rows]
    (glue / f"{name}.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")
  (work / "tiny.yaml").write_text(yaml.safe_dump(_TINY), encoding="utf-8")


class Rehearsal:
  """The guide, command by command."""

  def __init__(self, work: pathlib.Path):
    self.work = work
    self._replacements = replacements(work)
    self._assigned: list[str] = []
    self._home = work / "home"
    # What `swe doctor tpu --fit` leaves; it needs the TPU compiler.
    fit = {"topology": "v5e:2x4", "micro_batches": 2}
    (self._home / "runs" / "doctor_tpu").mkdir(parents=True)
    (self._home / "runs/doctor_tpu/tpu.json").write_text(json.dumps(fit))
    # A machine on which everything is installed, and gcloud.
    programs = work / "vm" / ".venv" / "bin"
    programs.parent.mkdir(parents=True)
    programs.symlink_to(os.path.dirname(sys.executable))
    (programs.parent / ".on_tpu").touch()
    self._vms = work / "vms"
    self._vms.mkdir()
    gcloud = work / "bin" / "gcloud"
    gcloud.parent.mkdir()
    module = _ROOT / "benchmarks" / "fake_gcloud.py"
    gcloud.write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
    gcloud.chmod(0o755)

  def start(self, command: str, log: pathlib.Path) -> subprocess.Popen[bytes]:
    """Starts a command in a shell with the variables assigned so far."""
    for old, new in self._replacements.items():
      command = command.replace(old, new)
    script = "\n".join([*self._assigned, command])
    programs = os.path.dirname(sys.executable)
    places = (str(_ROOT), os.environ.get("PYTHONPATH", ""))
    paths = (str(self.work / "bin"), programs, os.environ["PATH"])
    env = os.environ | {
      "PATH": os.pathsep.join(paths),
      "SWE_HOME": str(self.work / "vm"),
      "SWE_POLL_SECONDS": "1",
      "FAKE_GCLOUD_DIR": str(self._vms),
      "PYTHONPATH": os.pathsep.join(filter(None, places)),
      "CUDA_VISIBLE_DEVICES": "-1",
    }
    with log.open("ab") as file:
      return subprocess.Popen(
        ["bash", "-c", script],
        cwd=self._home,
        env=env,
        stdout=file,
        stderr=subprocess.STDOUT,
        start_new_session=True,
      )

  def run(self, command: str) -> str:
    """Runs a command of the guide; returns what it printed."""
    if re.match(r"[A-Z_]+=", command):
      for old, new in self._replacements.items():
        command = command.replace(old, new)
      self._assigned.append(command)
      return ""
    log = self.work / "log.txt"
    before = log.stat().st_size if log.exists() else 0
    _end([self.start(command, log)], log)
    return log.read_bytes()[before:].decode(errors="replace")

  def train(self, command: str, indices: Sequence[str]) -> None:
    """Runs a loop of `swe train` in each worker, and preempts it."""
    name = re.findall(r"--model_dir=gs://BUCKET/(\S+?)[;\s]", command)[0]
    model_dir = self.work / "bucket" / name
    logs = [
      self.work / f"{name.replace('/', '_')}_{index}.txt" for index in indices
    ]
    loops = [
      self.start(command.replace("INDEX", index), log)
      for index, log in zip(indices, logs)
    ]
    try:
      for step, number in _PREEMPTIONS:
        _wait(lambda step=step: _last_step(model_dir) >= step, loops, logs)
        _preempt([_trainer(loop) for loop in loops], number)
        at = _last_step(model_dir)
        phase = "shared" if at < _TAU else "unshared"
        print(f"  {number.name} at step {at}, {phase} phase", flush=True)
      _end(loops, logs[0])
    finally:
      for loop in loops:
        if loop.poll() is None:
          os.killpg(loop.pid, signal.SIGKILL)
    self._check(model_dir, logs)

  def keep(self, command: str) -> None:
    """Runs keep.sh to the end through preemptions, then with two faults."""
    put_on_cpu(self._home / "launch")
    bucket, train = self.work / "bucket/runs", self._home / "launch/train.sh"
    log, vm_log = self.work / "keep.txt", self.work / "swe_vm.txt"
    pid = self._vms / "swe" / "pid"
    keeper = self.start(command, log)
    for step, number in _PREEMPTIONS:
      model_dir = bucket / "large_swe"
      _wait(lambda step=step: _last_step(model_dir) >= step, [keeper], [log])
      group = _group(int(pid.read_text()))
      # The machine goes away, and all that runs on it.
      _preempt(group, number)
      (pid.parent / "preempted").touch()
      _wait(lambda: not pid.parent.exists(), [keeper], [log])
      print(f"  {number.name} at step {_last_step(model_dir)}", flush=True)
    _end([keeper], log)
    self._expect(model_dir, 0, log)
    text = train.read_text()
    # An invalid argument must not be tried twice.
    invalid = "--params_override=task.sharing.unit_size=3"
    train.write_text(text.replace("--mode=", f"{invalid} --mode="))
    keeper = self.start(command, log)
    _wait(lambda: keeper.poll() is not None, [], [log])
    self._expect(model_dir, 2, log)
    # Nor one that the kernel kills for its memory.
    train.write_text(text.replace("runs/large_swe ", "runs/large_swe_2 "))
    keeper = self.start(command, log)
    model_dir = bucket / "large_swe_2"
    _wait(lambda: _last_step(model_dir) > 0, [keeper], [log])
    trainers = [p for p in _group(int(pid.read_text())) if _is_trainer(p)]
    _preempt(trainers, signal.SIGKILL)
    _wait(lambda: keeper.poll() is not None, [], [log])
    self._expect(model_dir, 137, log)
    starts = vm_log.read_text(errors="replace").count("ended with status")
    if starts != 2:
      raise RehearsalFailed(f"{vm_log}: {starts} ends with an error, not 2")

  def _expect(self, model_dir: pathlib.Path, status: int, log) -> None:
    """Raises unless keep.sh saw the status and returned the TPU."""
    left = self.work / "bucket/runs/large_swe.launch/exit_status"
    found = left.read_text().strip()
    left.unlink()
    print(f"  {model_dir.name} ended with status {found}", flush=True)
    if found != str(status) or list(self._vms.iterdir()):
      raise RehearsalFailed(f"{status} was expected; see {log}")
    if status == 0 and _last_step(model_dir) != _STEPS:
      raise RehearsalFailed(f"{model_dir} ends at {_last_step(model_dir)}")

  def _check(self, model_dir: pathlib.Path, logs: list[pathlib.Path]) -> None:
    """Raises unless a run was preempted as planned, and finished."""
    if _last_step(model_dir) != _STEPS:
      raise RehearsalFailed(f"{model_dir} ends at {_last_step(model_dir)}")
    for log in logs:
      text = log.read_text(encoding="utf-8", errors="replace")
      ends = re.findall(r"ended with status (\d+)", text)
      print(f"  {log.stem}: the ends before the last: {', '.join(ends)}")
      # A worker may also end because its peer is gone.
      if len(ends) < len(_PREEMPTIONS) or not {"75", "137"} <= set(ends):
        raise RehearsalFailed(f"{log}: it was not preempted in every phase")
      saved = re.findall(r"saved a checkpoint at step (\d+)", text)
      if {int(step) < _TAU for step in saved} != {True, False}:
        raise RehearsalFailed(f"{log}: SIGTERM saved at steps {saved}")


def put_on_cpu(folder: pathlib.Path) -> None:
  """Takes what only a TPU has out of what `swe launch` wrote."""
  config = yaml.safe_load((folder / "run.yaml").read_text())
  config["runtime"]["distribution_strategy"] = "off"
  (folder / "run.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
  train = (folder / "train.sh").read_text()
  (folder / "train.sh").write_text(train.replace(" \\\n  --tpu=local", ""))


def _group(leader: int) -> list[int]:
  """Returns the processes of a group."""
  found = subprocess.run(
    ["pgrep", "-g", str(leader)], capture_output=True, check=False
  )
  return [int(each) for each in found.stdout.split()]


def _is_trainer(process: int) -> bool:
  line = pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
  return b"python" in line and b"--experiment" in line


def _trainer(loop: subprocess.Popen[bytes]) -> int | None:
  """Returns the training process of a loop, if there is one."""
  path = pathlib.Path(f"/proc/{loop.pid}/task/{loop.pid}/children")
  for child in path.read_text().split():
    line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
    if b"swe_tf.train" in line:
      return int(child)
  return None


def _preempt(trainers: Sequence[int | None], number: signal.Signals) -> None:
  """Ends processes as a cloud does: a signal, some time, then SIGKILL."""
  found = [trainer for trainer in trainers if trainer is not None]
  for each in (number, signal.SIGKILL):
    for trainer in found:
      if _is_there(trainer):
        os.kill(trainer, each)
    deadline = time.monotonic() + _GRACE_SECONDS
    while any(map(_is_there, found)) and time.monotonic() < deadline:
      time.sleep(0.05)


def _is_there(process: int) -> bool:
  return pathlib.Path(f"/proc/{process}").exists()


def _last_step(model_dir: pathlib.Path) -> int:
  steps = [
    int(path.stem.partition("-")[2]) for path in model_dir.glob("ckpt-*.index")
  ]
  return max(steps, default=0)


def _wait(
  is_so: Callable[[], bool],
  processes: Sequence[subprocess.Popen[bytes]],
  logs: Sequence[pathlib.Path],
) -> None:
  """Waits until a condition holds; raises if a process ends before that."""
  deadline = time.monotonic() + _PATIENCE_SECONDS
  while not is_so():
    if any(each.poll() is not None for each in processes):
      raise RehearsalFailed(f"it ended too early; see {logs[0]}")
    if time.monotonic() > deadline:
      raise RehearsalFailed(f"nothing happens any more; see {logs[0]}")
    time.sleep(0.02)


def _end(processes: Sequence[subprocess.Popen[bytes]], log) -> None:
  """Waits for the end of processes; raises if one fails."""
  for each in processes:
    status = each.wait(timeout=_PATIENCE_SECONDS)
    if status:
      text = log.read_text(encoding="utf-8", errors="replace")
      print(text[-3000:], file=sys.stderr)
      raise RehearsalFailed(f"it ended with status {status}; see {log}")


def rehearse(work: pathlib.Path) -> None:
  """Runs the page's commands in a directory of their own."""
  used: set[str] = set()
  _stage(work)
  rehearsal = Rehearsal(work)
  for command in commands():
    why = left_out(command)
    if why is not None:
      used |= {start for start in LEFT_OUT if command.startswith(start)}
      print(f"# not run ({why}): {command}")
      continue
    print(f"$ {command}", flush=True)
    start = time.monotonic()
    if command.startswith("until "):
      rehearsal.train(command, ("0", "1"))
    elif command == "bash launch/keep.sh":
      rehearsal.keep(command)
    else:
      output = rehearsal.run(command)
      for line in output.strip().splitlines()[-3:]:
        print(f"  {line}")
    print(f"  ({time.monotonic() - start:.0f} s)", flush=True)
  unused = set(LEFT_OUT) - used
  if unused:
    raise RehearsalFailed(f"not in the page any more: {sorted(unused)}")
  left = sorted(path.name for path in (work / "home").iterdir())
  if left != ["launch", "runs"]:
    raise RehearsalFailed(f"left in the working directory: {left}")


def main(argv: Sequence[str]) -> None:
  """Rehearses and prints how long it took."""
  del argv
  start = time.monotonic()
  with tempfile.TemporaryDirectory() as scratch:
    work = pathlib.Path(_OUTPUT_DIR.value or scratch).absolute()
    work.mkdir(parents=True, exist_ok=True)
    try:
      rehearse(work)
    except RehearsalFailed as error:
      sys.exit(f"error: {error}")
  minutes = (time.monotonic() - start) / 60
  print(f"the guide works: {minutes:.1f} minutes, {os.cpu_count()} cores")


if __name__ == "__main__":
  app.run(main)
