"""A vision transformer on scikit-learn's digits, with and without sharing.

    python examples/vit.py --output_dir=DIR

8 blocks of width 48 on 8x8 images in patches of 2x2. Both runs start from the
same seed and see the same batches for the same number of updates.
"""

import comparison
import reporting
from sklearn import datasets
from sklearn import model_selection
import tf_keras
import transformer

BLOCKS, WIDTH, HEADS = 8, 48, 4
STEPS, BATCH, PEAK = 400, 64, 2e-3


def build_model():
  """Returns the model, and its repeated blocks."""
  images = tf_keras.Input([8, 8, 1])
  x = tf_keras.layers.Conv2D(WIDTH, kernel_size=2, strides=2)(images)
  x = transformer.Positions()(tf_keras.layers.Reshape([16, WIDTH])(x))
  blocks = [transformer.TransformerBlock(WIDTH, HEADS) for _ in range(BLOCKS)]
  for block in blocks:
    x = block(x)
  x = tf_keras.layers.LayerNormalization(epsilon=1e-6)(x)
  x = tf_keras.layers.GlobalAveragePooling1D()(x)
  return tf_keras.Model(images, tf_keras.layers.Dense(10)(x)), blocks


def load_data():
  """Returns training and validation images and labels."""
  images, labels = datasets.load_digits(return_X_y=True)
  images = (images.reshape([-1, 8, 8, 1]) / 8 - 1).astype("float32")
  return model_selection.train_test_split(
    images, labels, test_size=0.3, random_state=0, stratify=labels
  )


def train(steps: int, *, share: bool, callbacks=()):
  """Trains for `steps` updates; returns Keras's history."""
  train_images, images, train_labels, labels = load_data()
  tf_keras.utils.set_random_seed(0)
  model, blocks = build_model()
  return comparison.fit(
    model,
    blocks,
    (train_images, train_labels),
    (images, labels),
    loss=tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
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
    title=f"ViT on digits, {BLOCKS} blocks",
    metric="validation loss",
    name="vit",
  )


if __name__ == "__main__":
  main()
