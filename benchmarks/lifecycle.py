"""One-time costs of a run: compiling, untying, saving, restoring; and memory.

    python -m benchmarks.lifecycle --layers=6,12,24,48

For each depth, one process runs the stock step and one runs Model Garden's
trainer as `swe train` does: shared, untied, unshared, saved, restored. Memory
is the high-water mark of the process in a phase above what it had before the
model was built, as the kernel counts it (Linux only).
"""

import multiprocessing
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# pylint: disable=g-import-not-at-top
from absl import app
from absl import flags
from absl import logging
import tensorflow as tf

from benchmarks import common
from official.core import train_utils
from swe_tf.doctor.tpu import step_kinds
from swe_tf.tasks import masked_lm
from swe_tf.training import trainer as trainer_lib

_LAYERS = flags.DEFINE_list("layers", ["6", "12", "24", "48"], "Depths.")
_WIDTH = flags.DEFINE_integer("width", 256, "The width of the model.")
_OUTPUT = flags.DEFINE_string("output", None, "A JSON file for the figures.")
_STEPS = 4


def _memory(field: str) -> int:
  """Returns `VmRSS` or `VmHWM` of this process in bytes."""
  with open("/proc/self/status") as file:
    for line in file:
      if line.startswith(f"{field}:"):
        return 1024 * int(line.split()[1])
  raise ValueError(field)


def _forget_peak() -> None:
  with open("/proc/self/clear_refs", "w") as file:
    file.write("5")


def _timed(function) -> float:
  start = time.perf_counter()
  function()
  return time.perf_counter() - start


def _stock(config):
  """Returns the figures of the stock step."""
  before = _memory("VmRSS")
  _forget_peak()
  step = step_kinds.build_step(step_kinds.STOCK, config)
  inputs = step_kinds.make_inputs(config)
  program = tf.function(lambda: step.run(inputs))
  compiling = _timed(lambda: float(program()))
  for _ in range(_STEPS):
    float(program())
  return {"stock compile": compiling, "stock memory": _memory("VmHWM") - before}


def _swe(config):
  """Returns the figures of a run: shared, untied, unshared, saved, restored."""
  before = _memory("VmRSS")
  _forget_peak()
  task = masked_lm.SharedMaskedLMTask(config.task)
  task.check_data = lambda: None
  dataset = tf.data.Dataset.from_tensors(
    step_kinds.make_inputs(config)
  ).repeat()
  trainer = trainer_lib.SharedWeightsTrainer(
    config,
    task,
    task.build_model(),
    train_utils.create_optimizer(task, config),
    evaluate=False,
    train_dataset=dataset,
  )
  trainer.initialize()
  figures = {"shared compile": _timed(lambda: trainer.train(tf.constant(1)))}
  trainer.train(tf.constant(_STEPS))
  figures["shared memory"] = _memory("VmHWM") - before
  _forget_peak()
  # One more shared step, then the slots, the second program and its first step.
  figures["untie pause"] = _timed(lambda: trainer.train(tf.constant(2)))
  trainer.train(tf.constant(_STEPS))
  figures["unshared memory"] = _memory("VmHWM") - before
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "ckpt")
    figures["save"] = _timed(lambda: trainer.checkpoint.write(path))
    figures["restore"] = _timed(lambda: trainer.checkpoint.read(path))
  return figures


def _measure(kind: str, layers: int, width: int):
  logging.set_verbosity(logging.ERROR)
  config = common.make_config(width=width, batch=4, length=32, layers=layers)
  config = config.replace(task={"sharing": {"untie_step": 2 + _STEPS}})
  config.validate()
  return {"stock": _stock, "swe": _swe}[kind](config)


def main(_):
  results = []
  context = multiprocessing.get_context("spawn")
  for layers in map(int, _LAYERS.value):
    figures = {"layers": layers, "width": _WIDTH.value}
    for kind in ("stock", "swe"):
      with context.Pool(1) as pool:
        figures |= pool.apply(_measure, (kind, layers, _WIDTH.value))
    results.append(figures)
    print(
      f"{layers:>2} layers: compile stock {figures['stock compile']:.1f} s, "
      f"shared {figures['shared compile']:.1f} s; untie pause "
      f"{figures['untie pause']:.1f} s; save {figures['save']:.2f} s, "
      f"restore {figures['restore']:.2f} s; memory stock "
      f"{figures['stock memory'] / 1e6:.0f} MB, shared "
      f"{figures['shared memory'] / 1e6:.0f} MB, unshared "
      f"{figures['unshared memory'] / 1e6:.0f} MB",
      flush=True,
    )
    common.write_figures(_OUTPUT.value, results)


if __name__ == "__main__":
  app.run(main)
