"""A KerasHub BERT trained with masked LM, with and without sharing.

    KERAS_BACKEND=jax python examples/keras3_bert.py
    KERAS_BACKEND=tensorflow python examples/keras3_bert.py

8 blocks of width 48, built from their config: nothing is downloaded. The text
is the characters of NumPy's docstrings on this machine. Both runs start from
the same seed and see the same batches. `pip install '.[keras3]'` first.
"""

import argparse

import keras
import keras_hub
import numpy as np

import swe_tf
from swe_tf.data.text import docstrings

BLOCKS, WIDTH, HEADS = 8, 48, 4
LENGTH, CHARACTERS, MASK = 64, 64, 63
STEPS, BATCH, PEAK = 200, 16, 3e-3
EPOCHS = 10


def build_model():
  """Returns the model, and its repeated blocks."""
  backbone = keras_hub.models.BertBackbone(
    vocabulary_size=CHARACTERS,
    num_layers=BLOCKS,
    num_heads=HEADS,
    hidden_dim=WIDTH,
    intermediate_dim=2 * WIDTH,
    max_sequence_length=LENGTH,
    dropout=0.0,
  )
  positions = keras.Input([None], dtype="int32", name="mask_positions")
  head = keras_hub.layers.MaskedLMHead(
    token_embedding=backbone.token_embedding, intermediate_activation="gelu"
  )
  outputs = head(backbone.output["sequence_output"], positions)
  inputs = {**backbone.input, "mask_positions": positions}
  return keras.Model(inputs, outputs), backbone.transformer_layers


def load_data(steps: int):
  """Returns the features and labels of `steps` batches; 1 in 4 is masked."""
  text = "".join(docstrings.documents(["numpy"])).lower()
  common = docstrings.character_vocab([text], MASK)
  number_of = {character: i for i, character in enumerate(common)}
  rng = np.random.default_rng(0)
  starts = rng.integers(0, len(text) - LENGTH, steps * BATCH)
  ids = np.array(
    [[number_of.get(c, 0) for c in text[s : s + LENGTH]] for s in starts],
    np.int32,
  )
  order = rng.permuted(np.tile(np.arange(LENGTH), (len(ids), 1)), axis=1)
  positions = np.sort(order[:, : LENGTH // 4], axis=1).astype(np.int32)
  labels = np.take_along_axis(ids, positions, axis=1)
  np.put_along_axis(ids, positions, MASK, axis=1)
  features = {
    "token_ids": ids,
    "segment_ids": np.zeros_like(ids),
    "padding_mask": np.ones_like(ids),
    "mask_positions": positions,
  }
  return features, labels


def train(steps: int, *, share: bool, callbacks=()) -> list[float]:
  """Trains for `steps` updates; returns the mean loss of each tenth."""
  keras.utils.set_random_seed(0)
  model, blocks = build_model()
  decay = keras.optimizers.schedules.CosineDecay(
    0.0, steps - steps // 20, warmup_target=PEAK, warmup_steps=steps // 20
  )
  optimizer, callbacks = keras.optimizers.AdamW(decay), list(callbacks)
  if share:
    plan = swe_tf.SharingPlan.from_layers(blocks)
    optimizer = swe_tf.SharedWeightsOptimizer(optimizer, plan, steps // 10)
    callbacks.append(swe_tf.UntieCallback())
  model.compile(
    optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  )
  x, y = load_data(steps)
  losses = []
  for part in range(EPOCHS):
    rows = slice(part * len(y) // EPOCHS, (part + 1) * len(y) // EPOCHS)
    batch = {name: values[rows] for name, values in x.items()}
    history = model.fit(
      *(batch, y[rows]),
      batch_size=BATCH,
      shuffle=False,
      verbose=0,
      callbacks=callbacks,
    )
    losses += history.history["loss"]
  return losses


def main(argv=None) -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--steps", type=int, default=STEPS, help="of each run")
  steps = parser.parse_args(argv).steps
  if steps < 20 or steps % EPOCHS:
    parser.error(f"--steps ({steps}) must be 20 or more, in tens.")
  runs = [train(steps, share=share) for share in (False, True)]
  print(f"backend {keras.config.backend()}, untied after step {steps // 10}")
  print("   step  never shared  shared, then untied")
  for part, (baseline, shared) in enumerate(zip(*runs), 1):
    print(f"{part * steps // EPOCHS:>7} {baseline:>13.4f} {shared:>20.4f}")


if __name__ == "__main__":
  main()
