"""What the examples of tf_keras have in common: data, training, both runs.

Sharing is two lines and a callback, in `fit`.
"""

import argparse
from collections.abc import Callable, Sequence
import math
import pathlib

import numpy as np
import reporting
import tensorflow as tf
import tf_keras

import swe_tf

_EVALUATIONS = 20


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
    title: See `reporting.report`.
    metric: The name of the loss.
    name: The figure's name, without its suffix.
  """
  runs = {
    "never shared": train(flags.steps, share=False),
    "shared, then untied": train(flags.steps, share=True),
  }
  reporting.report(
    title,
    {run_name: run.history["val_loss"] for run_name, run in runs.items()},
    metric=metric,
    steps=flags.steps,
    untie_step=flags.steps // 10,
    path=pathlib.Path(flags.output_dir) / f"{name}.png",
  )
