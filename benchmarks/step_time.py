"""Step time of the shared and the unshared phase against stock Model Garden.

    python -m benchmarks.step_time --layers=6 --cosine    # part of `make bench`
    python -m benchmarks.step_time --layers=6,12
    python -m benchmarks.step_time --layers=6 --replicas=4

Compiled steps of one BERT live side by side: Model Garden's own (its optimizer,
nothing of ours), a copy of it, shared, unshared, truly tied (ALBERT's way, one
block that is called L times), and with --cosine a shared one that measures the
cosine of the gradients in every step (training does so once in
`trainer.summary_interval` steps). They take turns (`common`); a figure has its
quartiles beside it. The ratio of stock to its own copy shows what the machine
and the method of measuring add. Time is wall-clock time; CPU time, which other
processes disturb less, is given beside it.
"""

import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# pylint: disable=g-import-not-at-top
from absl import app
from absl import flags
from absl import logging
import tensorflow as tf

from benchmarks import common
from swe_tf.doctor.tpu import step_kinds
from swe_tf.modeling import encoder

# The model computes on tokens, the optimizer on weights: few tokens per step, a
# wide model and LAMB, which is many operations per weight where AdamW is one
# fused kernel, make the optimizer dominate on a CPU.
CONFIGURATIONS = {
  "compute dominates": dict(width=64, batch=16, length=128, optimizer="adamw"),
  "few tokens": dict(width=512, batch=4, length=8, optimizer="adamw"),
  "optimizer dominates": dict(width=512, batch=4, length=8, optimizer="lamb"),
}

_ROUNDS = flags.DEFINE_integer("rounds", 20, "How often to go round at least.")
_SECONDS = flags.DEFINE_float(
  "seconds", 60.0, "How long to go on with the rounds of one configuration."
)
_LAYERS = flags.DEFINE_list("layers", ["24"], "Numbers of layers.")
_REPLICAS = flags.DEFINE_integer("replicas", 1, "Number of CPU replicas.")
_CONFIGURATIONS = flags.DEFINE_list(
  "configurations", list(CONFIGURATIONS), "What dominates."
)
flags.register_validator(
  "configurations",
  lambda names: set(names) <= set(CONFIGURATIONS),
  message=f"must be of {', '.join(CONFIGURATIONS)}.",
)
_COSINE = flags.DEFINE_bool("cosine", False, "Time the cosine too.")
_OUTPUT = flags.DEFINE_string("output", None, "A JSON file for the figures.")

_MEASURED = "shared, cosine in every step"
_TIED = "truly tied"
_COPY = "stock once more"


class _TiedEncoder(encoder.PreLnBertEncoder):
  """ALBERT's way: the first block is called in place of all others."""

  def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self._transformer_layers = [self._transformer_layers[0]] * len(
      self._transformer_layers
    )


def _build(kind: str, config) -> step_kinds.Step:
  if kind == _MEASURED:
    config = config.replace(trainer={"summary_interval": 1})
    return step_kinds.build_step(step_kinds.SHARED, config)
  if kind == _COPY:
    return step_kinds.build_step(step_kinds.STOCK, config)
  if kind != _TIED:
    return step_kinds.build_step(kind, config)
  untied, encoder.PreLnBertEncoder = encoder.PreLnBertEncoder, _TiedEncoder
  try:
    return step_kinds.build_step(step_kinds.STOCK, config)
  finally:
    encoder.PreLnBertEncoder = untied


def make_step(kind: str, config, strategy):
  """Returns a compiled training step of its own model, already run once."""
  with strategy.scope():
    step = _build(kind, config)
    inputs = step_kinds.make_inputs(
      config,
      config.task.train_data.global_batch_size // strategy.num_replicas_in_sync,
    )

  # An eager step makes the slots, without which a program is traced twice.
  strategy.run(step.run, args=(inputs,))

  @tf.function
  def program():
    return strategy.run(step.run, args=(inputs,))

  def run():
    for loss in strategy.experimental_local_results(program()):
      float(loss)

  run()
  return run


def measure(name: str, layers: int, strategy):
  """Returns the median ratios of one configuration."""
  shape = CONFIGURATIONS[name]
  config = common.make_config(**shape, layers=layers)
  kinds = (
    *(step_kinds.STOCK, step_kinds.SHARED, step_kinds.UNSHARED),
    _TIED,
    *([_MEASURED] if _COSINE.value else []),
    _COPY,
  )
  programs = {kind: make_step(kind, config, strategy) for kind in kinds}
  common.take_turns(programs, rounds=2)  # Warms up.
  times, work = common.take_turns(programs, _ROUNDS.value, _SECONDS.value)

  def quartiles(measured, kind):
    return statistics.quantiles(
      common.ratios(measured, kind, step_kinds.STOCK), n=4
    )

  def ratio(kind, to=step_kinds.STOCK):
    return common.median_ratio(times, kind, to)

  cosine = (
    {"a cosine/shared": ratio(_MEASURED, step_kinds.SHARED) - 1.0}
    if _COSINE.value
    else {}
  )
  return {
    "configuration": name,
    "layers": layers,
    "replicas": strategy.num_replicas_in_sync,
    "rounds": len(times[step_kinds.STOCK]),
    **shape,
    "stock_seconds": statistics.median(times[step_kinds.STOCK]),
    "shared/stock": ratio(step_kinds.SHARED),
    "unshared/stock": ratio(step_kinds.UNSHARED),
    "stock/stock": ratio(_COPY),
    "shared/tied": ratio(step_kinds.SHARED, _TIED),
    **{
      f"{kind}/stock quartiles": quartiles(times, kind)[::2]
      for kind in (step_kinds.SHARED, step_kinds.UNSHARED)
    },
    **{
      f"{kind}/stock work": quartiles(work, kind)[1]
      for kind in (step_kinds.SHARED, step_kinds.UNSHARED)
    },
    **cosine,
  }


def make_strategy(replicas: int) -> tf.distribute.Strategy:
  """Returns a strategy; a process can have collectives of one size only."""
  if replicas == 1:
    return tf.distribute.get_strategy()
  cpu = tf.config.list_physical_devices("CPU")[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
  )
  return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])


def main(_):
  logging.set_verbosity(logging.ERROR)
  results = []
  strategy = make_strategy(_REPLICAS.value)
  for layers in map(int, _LAYERS.value):
    for name in _CONFIGURATIONS.value:
      results.append(measure(name, layers, strategy))
      _print(results[-1])
      common.write_figures(_OUTPUT.value, results)


def _print(r) -> None:
  cosine = (
    f", a cosine costs {r['a cosine/shared']:.1%} of a shared step"
    if _COSINE.value
    else ""
  )
  print(
    f"{r['configuration']:<20} {r['layers']:>2} layers of width "
    f"{r['width']:>3}, {r['replicas']} replicas, {r['batch']:>2} x "
    f"{r['length']:>3} tokens, {r['rounds']:>3} rounds: "
    f"stock {1000 * r['stock_seconds']:7.1f} ms, "
    f"shared/stock {r['shared/stock']:.3f}, "
    f"unshared/stock {r['unshared/stock']:.3f}, "
    f"shared/tied {r['shared/tied']:.3f}, "
    f"stock/stock {r['stock/stock']:.3f}; by the cores' work "
    f"{r['shared/stock work']:.3f}, {r['unshared/stock work']:.3f}{cosine}",
    flush=True,
  )


if __name__ == "__main__":
  app.run(main)
