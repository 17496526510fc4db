"""A KerasHub BERT trained with masked LM, with and without sharing.

    KERAS_BACKEND=jax python examples/keras3_bert.py
    KERAS_BACKEND=tensorflow python examples/keras3_bert.py

4 blocks of width 64, built from their config: nothing is downloaded. 2 of 8
characters are to be guessed; the text is NumPy's docstrings on this machine.
Both runs start from the same seed and see the same batches, each once. `pip
install '.[keras3]'` first.
"""

import math
import pathlib

import keras
import keras_hub
import numpy as np
import reporting

import swe_tf
from swe_tf.data.text import docstrings

BLOCKS, WIDTH, HEADS = 4, 64, 4
LENGTH, CHARACTERS, MASK = 8, 64, 63
STEPS, BATCH, PEAK = 1000, 128, 4e-3
# KerasHub's, made for a width of 1024: so narrow a model would not get past the
# frequencies of the characters.
INITIALIZER_RANGE = 0.02


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
  model = keras.Model(inputs, outputs)
  for variable in model.trainable_variables:
    if variable.ndim > 1:
      variable.assign(variable * (WIDTH**-0.5 / INITIALIZER_RANGE))
  return model, backbone.transformer_layers


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
  """Trains for `steps` updates; returns the mean losses of up to 20 parts."""
  keras.utils.set_random_seed(0)
  model, blocks = build_model()
  decay = keras.optimizers.schedules.CosineDecay(
    0.0, steps - steps // 10, warmup_target=PEAK, warmup_steps=steps // 10
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
  parts = math.gcd(steps, 20)
  losses = []
  for rows in np.split(np.arange(len(y)), parts):
    history = model.fit(
      {name: values[rows] for name, values in x.items()},
      y[rows],
      batch_size=BATCH,
      shuffle=False,
      verbose=0,
      callbacks=callbacks,
    )
    losses += history.history["loss"]
  return losses


def main(argv=None) -> None:
  flags = reporting.parse_flags(__doc__, STEPS, argv)
  backend = keras.config.backend()
  reporting.report(
    f"KerasHub BERT on {backend}, {BLOCKS} blocks",
    {
      "never shared": train(flags.steps, share=False),
      "shared, then untied": train(flags.steps, share=True),
    },
    metric="masked LM loss",
    steps=flags.steps,
    untie_step=flags.steps // 10,
    path=pathlib.Path(flags.output_dir) / f"keras3_bert_{backend}.png",
  )


if __name__ == "__main__":
  main()
