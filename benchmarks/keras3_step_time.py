"""What sharing costs in a step of Keras 3, as a ratio to the bare optimizer.

    KERAS_BACKEND=jax python -m benchmarks.keras3_step_time
    KERAS_BACKEND=tensorflow python -m benchmarks.keras3_step_time

A KerasHub BERT and AdamW; steps of `train_on_batch`, compiled by XLA, are
interleaved in one process. "bare once more" shows the noise.
"""

import statistics

from absl import app
from absl import flags
import keras
import keras_hub
import numpy as np

from benchmarks import common
import swe_tf

_ROUNDS = flags.DEFINE_integer("rounds", 30, "How often each step is timed.")
_OUTPUT = flags.DEFINE_string("output", None, "A JSON file for the figures.")

# The model's compute dominates in the first, the optimizer in the second.
CONFIGURATIONS = {
  "compute": dict(width=64, batch=16, length=64, layers=6),
  "optimizer": dict(width=256, batch=2, length=8, layers=6),
}
_BARE, _COPY = "bare", "bare once more"
_SHARED, _UNSHARED = "shared", "unshared"


def make_step(kind: str, width: int, batch: int, length: int, layers: int):
  """Returns a compiled training step of its own model, already run once."""
  backbone = keras_hub.models.BertBackbone(
    vocabulary_size=100,
    num_layers=layers,
    num_heads=4,
    hidden_dim=width,
    intermediate_dim=4 * width,
    max_sequence_length=length,
  )
  outputs = keras.layers.Dense(100)(backbone.output["sequence_output"])
  model = keras.Model(backbone.input, outputs)
  optimizer = keras.optimizers.AdamW(1e-3)
  if kind in (_SHARED, _UNSHARED):
    plan = swe_tf.SharingPlan.from_layers(backbone.transformer_layers)
    tau = 0 if kind == _UNSHARED else 10**6
    optimizer = swe_tf.SharedWeightsOptimizer(optimizer, plan, untie_step=tau)
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile(optimizer, loss=loss, jit_compile=True)
  ids = np.random.default_rng(0).integers(0, 100, (batch, length), np.int32)
  x = {
    "token_ids": ids,
    "segment_ids": np.zeros_like(ids),
    "padding_mask": np.ones_like(ids),
  }
  step = lambda: model.train_on_batch(x, ids)
  step()
  return step


def main(_):
  results = []
  for name, shape in CONFIGURATIONS.items():
    kinds = (_BARE, _SHARED, _UNSHARED, _COPY)
    steps = {kind: make_step(kind, **shape) for kind in kinds}
    common.take_turns(steps, rounds=3)  # Warms up.
    times, _ = common.take_turns(steps, _ROUNDS.value)
    ratios = {
      f"{kind}/bare": common.median_ratio(times, kind, _BARE)
      for kind in kinds[1:]
    }
    results.append(
      {
        "configuration": name,
        "backend": keras.config.backend(),
        **shape,
        "bare_seconds": statistics.median(times[_BARE]),
        **ratios,
      }
    )
    shown = ", ".join(f"{key} {value:.3f}" for key, value in ratios.items())
    print(
      f"{keras.config.backend()} {name}: bare "
      f"{1000 * results[-1]['bare_seconds']:.1f} ms, {shown}",
      flush=True,
    )
    common.write_figures(_OUTPUT.value, results)


if __name__ == "__main__":
  app.run(main)
