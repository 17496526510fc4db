"""A small GPT on the characters of docstrings, with and without sharing.

    python examples/gpt.py --output_dir=DIR

8 causal blocks of width 48 predict the next of 64 characters. The text is the
docstrings of the standard library and of NumPy on this machine. Both runs start
from the same seed and see the same batches for the same number of updates.
"""

import functools

import comparison
import numpy as np
import reporting
import tf_keras
import transformer

from swe_tf.data.text import docstrings

BLOCKS, WIDTH, HEADS = 8, 48, 4
LENGTH, CHARACTERS = 64, 64
STEPS, BATCH, PEAK = 400, 16, 3e-3


def build_model():
  """Returns the model, and its repeated blocks."""
  ids = tf_keras.Input([LENGTH], dtype="int32")
  x = tf_keras.layers.Embedding(CHARACTERS, WIDTH)(ids)
  x = transformer.Positions()(x)
  blocks = [
    transformer.TransformerBlock(WIDTH, HEADS, causal=True)
    for _ in range(BLOCKS)
  ]
  for block in blocks:
    x = block(x)
  x = tf_keras.layers.LayerNormalization(epsilon=1e-6)(x)
  return tf_keras.Model(ids, tf_keras.layers.Dense(CHARACTERS)(x)), blocks


@functools.cache
def load_data():
  """Returns training and validation text, as ids of lower-case characters."""
  text = "".join(docstrings.documents(["numpy"])).lower()
  common = docstrings.character_vocab([text], CHARACTERS)
  number_of = {character: i for i, character in enumerate(common)}
  ids = np.array([number_of.get(c, 0) for c in text], np.int32)
  ids = ids[: len(ids) // (LENGTH + 1) * (LENGTH + 1)].reshape([-1, LENGTH + 1])
  return ids[:-256], ids[-256:]


def train(steps: int, *, share: bool, callbacks=()):
  """Trains for `steps` updates; returns Keras's history."""
  text, validation = load_data()
  tf_keras.utils.set_random_seed(0)
  model, blocks = build_model()
  return comparison.fit(
    model,
    blocks,
    (text[:, :-1], text[:, 1:]),
    (validation[:, :-1], validation[:, 1:]),
    loss=tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    steps=steps,
    share=share,
    peak=PEAK,
    batch_size=BATCH,
    callbacks=callbacks,
  )


def main(argv=None) -> None:
  flags = reporting.parse_flags(__doc__, STEPS, argv)
  comparison.compare(
    train,
    flags,
    title=f"GPT on characters, {BLOCKS} blocks",
    metric="validation loss",
    name="gpt",
  )


if __name__ == "__main__":
  main()
