"""Model Garden's own ViT, its experiment and its driver, with sharing by gin.

    python examples/model_garden_vit.py --output_dir=DIR

`vit_imagenet_pretrain` with the smallest of its models (ViT-Ti/16: 12 blocks of
width 192) on scikit-learn's digits. The driver is `official.vision.train`; the
shared run has two more flags, which name gin files. Run it again after Ctrl-C
to resume.
"""

import pathlib
import subprocess
import sys

import comparison
import reporting
import tensorflow as tf
import vit
import yaml

from swe_tf.analysis import scalars

GIN = pathlib.Path(__file__).resolve().parents[1] / "gin"
STEPS, BATCH, PEAK = 200, 32, 5e-4
SHARED = [f"--gin_file={GIN}/swe.gin", f"--gin_file={GIN}/vit.gin"]


def write_records(path: pathlib.Path, images, labels) -> None:
  """Writes images as records in Model Garden's format for ImageNet."""
  with tf.io.TFRecordWriter(str(path)) as writer:
    for image, label in zip(images, labels):
      pixels = tf.cast((image + 1) * 127.5, tf.uint8)
      encoded = tf.io.encode_png(tf.repeat(pixels, 3, axis=-1)).numpy()
      features = tf.train.Features(
        feature={
          "image/encoded": tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[encoded])
          ),
          "image/class/label": tf.train.Feature(
            int64_list=tf.train.Int64List(value=[int(label)])
          ),
        }
      )
      writer.write(tf.train.Example(features=features).SerializeToString())


def write_config(output_dir: pathlib.Path, steps: int) -> pathlib.Path:
  """Writes the data and a config of overrides; returns the config's path."""
  train_images, images, train_labels, labels = vit.load_data()
  write_records(output_dir / "train.tfrecord", train_images, train_labels)
  write_records(output_dir / "validation.tfrecord", images, labels)
  interval = comparison.epochs_of(steps)["steps_per_epoch"]
  data = {
    "global_batch_size": BATCH,
    "aug_crop": False,
    "aug_rand_hflip": False,  # A mirrored digit is not a digit.
  }
  config = {
    "runtime": {"distribution_strategy": "one_device", "num_gpus": 0},
    "task": {
      "model": {
        "num_classes": 10,
        "input_size": [32, 32, 3],
        "backbone": {
          "vit": {"model_name": "vit-ti16", "representation_size": 0}
        },
      },
      "train_data": {
        "input_path": str(output_dir / "train.tfrecord"),
        "seed": 0,
        **data,
      },
      "validation_data": {
        "input_path": str(output_dir / "validation.tfrecord"),
        **data,
      },
    },
    "trainer": {
      "train_steps": steps,
      "steps_per_loop": interval,
      "summary_interval": interval,
      "checkpoint_interval": steps,
      "validation_interval": interval,
      "validation_steps": len(labels) // BATCH,
      "optimizer_config": {
        "learning_rate": {
          "cosine": {"initial_learning_rate": PEAK, "decay_steps": steps}
        },
        "warmup": {"linear": {"warmup_steps": max(1, steps // 20)}},
      },
    },
  }
  path = output_dir / "vit.yaml"
  path.write_text(yaml.safe_dump(config), encoding="utf-8")
  return path


def train(model_dir: pathlib.Path, config_file: pathlib.Path, flags) -> None:
  """Trains with the stock driver."""
  subprocess.run(
    [
      *(sys.executable, "-m", "official.vision.train"),
      "--experiment=vit_imagenet_pretrain",
      "--mode=train_and_eval",
      f"--config_file={config_file}",
      f"--model_dir={model_dir}",
      *flags,
    ],
    check=True,
  )


def main(argv=None) -> None:
  options = reporting.parse_flags(__doc__, STEPS, argv)
  output_dir = pathlib.Path(options.output_dir).resolve()
  output_dir.mkdir(parents=True, exist_ok=True)
  config_file = write_config(output_dir, options.steps)
  curves = {}
  for name, flags in (("never shared", []), ("shared, then untied", SHARED)):
    model_dir = output_dir / name.split(",")[0].replace(" ", "_")
    train(model_dir, config_file, flags)
    curve = scalars.read_scalars(str(model_dir / "validation"))
    curves[name] = [value for _, value in curve["validation_loss"]]
  reporting.report(
    "Model Garden's ViT-Ti/16 on digits",
    curves,
    metric="validation loss",
    steps=options.steps,
    untie_step=options.steps // 10,
    path=output_dir / "model_garden_vit.png",
  )


if __name__ == "__main__":
  main()
