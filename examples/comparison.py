"""What the examples have in common: flags, training, table, figure.

Sharing is two lines and a callback, in `fit`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
import math
import pathlib

from matplotlib import pyplot as plt
import numpy as np
import tensorflow as tf
import tf_keras

import swe_tf

_EVALUATIONS = 20


def parse_flags(
  description: str, steps: int, argv: Sequence[str] | None
) -> argparse.Namespace:
  """Parses the flags of an example; `argv` is the program's own if None."""
  parser = argparse.ArgumentParser(
    description=description.splitlines()[0],
    formatter_class=argparse.ArgumentDefaultsHelpFormatter,
  )
  parser.add_argument(
    "--output_dir", default="runs/examples", help="where the figure goes"
  )
  parser.add_argument("--steps", type=int, default=steps, help="of each run")
  flags = parser.parse_args(argv)
  if flags.steps < 10:
    parser.error(
      f"--steps ({flags.steps}) must be at least 10: a tenth of them is shared"
    )
  return flags


def batches(*arrays: np.ndarray, batch_size: int) -> tf.data.Dataset:
  """Returns endless shuffled batches, the same ones in every run."""
  data = tf.data.Dataset.from_tensor_slices(arrays)
  data = data.shuffle(len(arrays[0]), seed=0).repeat()
  return data.batch(batch_size, drop_remainder=True)


def schedule(
  peak: float, steps: int
) -> tf_keras.optimizers.schedules.LearningRateSchedule:
  """Returns a schedule that warms up for 5% of the steps and decays to 0."""
  warmup = max(1, steps // 20)
  return tf_keras.optimizers.schedules.CosineDecay(
    0.0, steps - warmup, warmup_target=peak, warmup_steps=warmup
  )


def epochs_of(steps: int) -> dict[str, int]:
  """Returns arguments of `fit`: `steps` updates, evaluated up to 20 times."""
  epochs = math.gcd(steps, _EVALUATIONS)
  return {"epochs": epochs, "steps_per_epoch": steps // epochs}


def fit(
  model: tf_keras.Model,
  blocks: Sequence[tf_keras.layers.Layer],
  train_data: Sequence[np.ndarray],
  validation_data: Sequence[np.ndarray],
  *,
  steps: int,
  share: bool,
  peak: float,
  batch_size: int,
  loss: str | tf_keras.losses.Loss,
  callbacks: Sequence[tf_keras.callbacks.Callback] = (),
  **kwargs,
) -> tf_keras.callbacks.History:
  """Trains a model, with its blocks shared for the first 10% or never.

  Args:
    model: The model, not compiled.
    blocks: Its repeated blocks.
    train_data: Inputs and targets.
    validation_data: The same for validation.
    steps: The number of updates.
    share: Whether the blocks are shared.
    peak: The highest learning rate.
    batch_size: The size of a training batch.
    loss: The loss.
    callbacks: More callbacks.
    **kwargs: For `compile`.
  """
  optimizer = tf_keras.optimizers.AdamW(schedule(peak, steps))
  callbacks = list(callbacks)
  if share:
    plan = swe_tf.SharingPlan.from_layers(blocks, unit_size=1)
    optimizer = swe_tf.SharedWeightsOptimizer(
      optimizer, plan, untie_step=steps // 10
    )
    callbacks.append(swe_tf.UntieCallback())
  model.compile(optimizer, loss, **kwargs)
  return model.fit(
    batches(*train_data, batch_size=batch_size),
    validation_data=tuple(validation_data),
    validation_batch_size=256,
    callbacks=callbacks,
    verbose=2,
    **epochs_of(steps),
  )


def compare(
  train: Callable[..., tf_keras.callbacks.History],
  flags: argparse.Namespace,
  *,
  title: str,
  metric: str,
  name: str,
) -> None:
  """Trains without sharing and with it, and reports both curves.

  Args:
    train: Trains a model, given the number of updates and `share`.
    flags: The flags of the program.
    title: See `report`.
    metric: The name of the loss.
    name: The figure's name, without its suffix.
  """
  runs = {
    "never shared": train(flags.steps, share=False),
    "shared, then untied": train(flags.steps, share=True),
  }
  report(
    title,
    {run_name: run.history["val_loss"] for run_name, run in runs.items()},
    metric=metric,
    steps=flags.steps,
    untie_step=flags.steps // 10,
    path=pathlib.Path(flags.output_dir) / f"{name}.png",
  )


def report(
  title: str,
  curves: Mapping[str, Sequence[float]],
  *,
  metric: str,
  steps: int,
  untie_step: int,
  path: pathlib.Path,
) -> None:
  """Prints curves side by side, and draws them.

  Args:
    title: What was trained.
    curves: The values of each run, at equal intervals up to `steps`.
    metric: The name of the values.
    steps: The number of updates of each run.
    untie_step: The update after which the shared run was untied.
    path: The PNG file to write.
  """
  count = len(next(iter(curves.values())))
  at = [steps * (i + 1) // count for i in range(count)]
  print(f"\n{title}: {metric}, untied after step {untie_step}")
  print("  ".join(["  step", *(f"{name:>20}" for name in curves)]))
  for step, *values in zip(at, *curves.values()):
    print("  ".join([f"{step:6}", *(f"{value:20.4f}" for value in values)]))

  figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
  for name, values in curves.items():
    axes.plot(at, values, marker=".", label=f"{name}: {values[-1]:.3g}")
  axes.axvline(untie_step, color="grey", linestyle=":", label="untied")
  axes.set(title=title, xlabel="step", ylabel=metric, yscale="log")
  axes.legend()
  path.parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(path, dpi=100)
  plt.close(figure)
  print(f"figure: {path}")
