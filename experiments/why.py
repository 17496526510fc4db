r"""Why sharing pays or not: what the layers do before and after the switch.

    python -m experiments.why STUDY.yaml ARM PEAK OUTPUT.json \
      task.train_data.input_path=...,task.validation_data.input_path=...

Trains one run of a regime of the map (seed 0) and stops around its untie step.
At each stop some batches go forward and backward without changing a weight;
then one more step is made. Recorded for each layer:

  gradient       norm of the mean gradient over the batches
  noise_scale    tr(cov of a sequence's gradient) / |mean|^2: the batch size, in
                 sequences, at which noise is as large as the signal
  own_square     mean over the weights of the squared gradient
  kept_square    the same as kept by the optimizer, corrected for its start
  update         norm of one step, relative to the weights

and for all of them: `cosine`, the mean over pairs of layers of the cosine of
their mean gradients; `shared_noise_scale` and `shared_square` of the mean
gradient over the layers, which is what a tied layer is trained with.
"""

import itertools
import sys
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from swe_tf import files
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import slots
from swe_tf.sharing import wrapper
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import tuning
from swe_tf.training import runner

_BATCHES = 24


class _Probe(wrapper.WrappedOptimizer):
  """Keeps the gradients of a step, clipped, instead of applying them."""

  def make_update(self, grads_and_vars, name, aggregate):
    del name, aggregate
    variables = [v for g, v in grads_and_vars if g is not None]
    reduced = self.aggregate_gradients(grads_and_vars)
    # A legacy optimizer returns only the gradients.
    grads = [each[0] if isinstance(each, tuple) else each for each in reduced]
    self._taken = self._no_dependency(
      {
        plan_lib.variable_key(v): tf.convert_to_tensor(g)
        for g, v in zip(grads, variables)
      }
    )
    return tf.no_op()

  def take(self) -> dict[str, tf.Tensor]:
    """Returns the gradients of the step that was just traced."""
    return self._taken


def _flat(values) -> np.ndarray:
  return np.concatenate([np.ravel(value) for value in values])


def _layers(model) -> list[list[tf.Variable]]:
  blocks = model.encoder_network.transformer_layers
  return [list(block.trainable_variables) for block in blocks]


def _gradients(trainer, optimizer, layers, batches) -> np.ndarray:
  """Returns the gradients of each layer for each batch: `[batch, layer, n]`."""
  probe = _Probe(optimizer)
  metrics = trainer.task.build_metrics(training=True)

  @tf.function
  def gradients(inputs):
    trainer.task.train_step(inputs, trainer.model, probe, metrics)
    found = probe.take()
    return [[found[plan_lib.variable_key(v)] for v in vs] for vs in layers]

  rows = [gradients(batch) for batch in itertools.islice(batches, _BATCHES)]
  return np.stack([[_flat(layer) for layer in row] for row in rows])


def noise_scale(gradients: np.ndarray, batch_size: int) -> float | None:
  """Returns the simple noise scale in sequences; None if there is no signal.

  Args:
    gradients: `[batches, weights]`, each the mean over a batch.
    batch_size: The number of sequences in a batch.
  """
  count = len(gradients)
  mean = gradients.mean(0)
  variance = gradients.var(0, ddof=1).sum()  # Of the mean over a batch.
  signal = float((mean**2).sum() - variance / count)
  return float(batch_size * variance / signal) if signal > 0 else None


def _mean_cosine(vectors: np.ndarray) -> float | None:
  if len(vectors) < 2:
    return None
  units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
  count = len(units)
  total = float((units.sum(0) ** 2).sum())
  return (total - count) / (count * (count - 1))


def _kept_squares(optimizer, layers, step: int) -> list[float | None]:
  # The map's optimizer is Model Garden's AdamW, a legacy one.
  decay = float(optimizer._get_hyper("beta_2"))  # pylint: disable=protected-access
  correction = 1.0 - decay ** max(step, 1)
  return [
    float(
      np.mean(_flat(slots.slots_of(optimizer, v)["v"].numpy() for v in layer))
      / correction
    )
    if all(slots.has_slots(optimizer, v) for v in layer)
    else None
    for layer in layers
  ]


def measure(trainer, optimizer, config) -> dict[str, Any]:
  """Measures at the current step, then makes one more step."""
  step = int(trainer.global_step.numpy())
  layers = _layers(trainer.model)
  data = trainer.task.build_inputs(config.task.train_data, start_step=step)
  grads = _gradients(trainer, optimizer, layers, iter(data))
  batch_size = config.task.train_data.global_batch_size
  shared, means = grads.mean(1), grads.mean(0)
  found = {
    "step": step,
    "phase": trainer.phase,
    "cosine": _mean_cosine(means),
    "shared_noise_scale": noise_scale(shared, batch_size),
    "shared_square": float((shared**2).mean()),
    "gradient": np.linalg.norm(means, axis=1).tolist(),
    "noise_scale": [noise_scale(g, batch_size) for g in grads.swapaxes(0, 1)],
    "own_square": (grads**2).mean((0, 2)).tolist(),
    "kept_square": _kept_squares(optimizer, layers, step),
  }
  before = [_flat(v.numpy() for v in layer) for layer in layers]
  trainer.train(tf.constant(1))
  after = [_flat(v.numpy() for v in layer) for layer in layers]
  found["update"] = [
    float(np.linalg.norm(b - a) / np.linalg.norm(a))
    for a, b in zip(before, after)
  ]
  return found


def main(study: str, arm: str, peak: str, output: str, override: str) -> None:
  """Trains and measures; see above."""
  known = study_file.read_study(study)
  assert known.tuning is not None
  run = known.run_of(tuning.Point(arm, float(peak), 0))
  config = experiments.make_config(known, run, override)
  config.lock()
  steps = config.trainer.train_steps
  sharing = config.task.sharing
  tau = round(sharing.untie_fraction * steps) if sharing.mode == "swe" else 0
  tau = tau or steps // 10  # Arms that tie nothing are measured there too.
  stops = sorted({tau // 2, tau - 1, tau, tau + 10, tau + 100, steps // 2})
  with tempfile.TemporaryDirectory() as folder:
    trainer = runner.make_runner(config, folder, mode="train").trainer
    optimizer = trainer.optimizer
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    rows = []
    for stop in stops:
      missing = stop - int(trainer.global_step.numpy())
      if missing > 0:
        trainer.train(tf.constant(missing))
      rows.append(measure(trainer, optimizer, config))
  files.write_json(
    output,
    {"study": study, "run": run.name, "tau": tau, "stops": rows},
  )


if __name__ == "__main__":
  main(*sys.argv[1:])
