"""A residual MLP on a synthetic regression, with and without sharing.

    python examples/mlp.py --output_dir=DIR

16 residual blocks of width 32 learn Friedman's first function, with noise of
variance 1 in the training targets and none in the validation targets. Both runs
start from the same seed and see the same batches for the same number of
updates.
"""

import comparison
import reporting
from sklearn import datasets
import tf_keras

BLOCKS, WIDTH = 16, 32
STEPS, BATCH, PEAK = 2000, 64, 3e-3


class ResidualBlock(tf_keras.layers.Layer):
  """Adds a small MLP of its normalised input to its input."""

  def __init__(self):
    super().__init__()
    self._norm = tf_keras.layers.LayerNormalization()
    self._expand = tf_keras.layers.Dense(2 * WIDTH, activation="relu")
    self._contract = tf_keras.layers.Dense(WIDTH)

  def call(self, x):
    return x + self._contract(self._expand(self._norm(x)))


def build_model():
  """Returns the model, and its repeated blocks."""
  features = tf_keras.Input([10])
  x = tf_keras.layers.Dense(WIDTH)(features)
  blocks = [ResidualBlock() for _ in range(BLOCKS)]
  for block in blocks:
    x = block(x)
  x = tf_keras.layers.LayerNormalization()(x)
  return tf_keras.Model(features, tf_keras.layers.Dense(1)(x)), blocks


def load_data():
  """Returns training and validation features and targets."""
  x, y = datasets.make_friedman1(n_samples=4000, noise=1.0, random_state=0)
  val_x, val_y = datasets.make_friedman1(n_samples=1000, random_state=1)
  mean, scale = y.mean(), y.std()
  return (x, (y - mean) / scale), (val_x, (val_y - mean) / scale)


def train(steps: int, *, share: bool, callbacks=()):
  """Trains for `steps` updates; returns Keras's history."""
  train_data, validation_data = load_data()
  tf_keras.utils.set_random_seed(0)
  model, blocks = build_model()
  return comparison.fit(
    model,
    blocks,
    train_data,
    validation_data,
    loss="mse",
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
    title=f"Residual MLP on Friedman's function, {BLOCKS} blocks",
    metric="validation mean squared error",
    name="mlp",
  )


if __name__ == "__main__":
  main()
