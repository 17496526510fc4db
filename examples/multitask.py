"""Two tasks on one stack of blocks, by Model Garden's multi-task trainer.

    python examples/multitask.py --output_dir=DIR

8 residual blocks of width 32 learn Friedman's second and third functions of the
same inputs, jointly. Multi-task runs have trainers of their own, so no gin file
can share there: the optimizer is made in code, and a thin trainer unties.
"""

import pathlib
import tempfile
import types

import comparison
import mlp
import numpy as np
import reporting
from sklearn import datasets
import tensorflow as tf
import tf_keras

from official.core import base_task
from official.core import config_definitions as cfg
from official.modeling.multitask import base_model
from official.modeling.multitask import base_trainer
from official.modeling.multitask import configs
from official.modeling.multitask import multitask
from official.modeling.multitask import train_lib
import swe_tf

BLOCKS = 8
STEPS, BATCH, PEAK = 300, 64, 3e-3
FUNCTIONS = (datasets.make_friedman2, datasets.make_friedman3)


class UntyingTrainer(base_trainer.MultiTaskBaseTrainer):
  """Unties after the loop in which tau is reached, and compiles the next anew.

  The same lines work with `MultiTaskInterleavingTrainer`. Loops must end at
  tau: the optimizer refuses to go on sharing past it.
  """

  def train_loop_end(self):
    logs = super().train_loop_end()
    optimizer = self.optimizer
    is_shared = getattr(optimizer, "phase", None) == "shared"
    if is_shared and int(optimizer.iterations) >= optimizer.untie_step:
      optimizer.untie()
      self._train_loop_fn = None
    return logs


class FunctionTask(base_task.Task):
  """Regression of one function, given as the task's name."""

  def build_inputs(self, params, input_context=None):
    del params, input_context
    (make,) = (each for each in FUNCTIONS if each.__name__ == self.name)
    x, y = make(n_samples=4000, random_state=0)
    x, y = ((a - a.mean(0)) / a.std(0) for a in (x, y[:, np.newaxis]))
    data = x.astype(np.float32), y.astype(np.float32)
    return comparison.batches(*data, batch_size=BATCH)

  def build_losses(self, labels, model_outputs, aux_losses=None):
    del aux_losses
    return tf.reduce_mean(tf.square(labels - model_outputs))


class Model(base_model.MultiTaskBaseModel):
  """A head for each function, on blocks that they have in common."""

  def _instantiate_sub_tasks(self):
    features = x = tf_keras.Input([4])
    x = tf_keras.layers.Dense(mlp.WIDTH)(x)
    self.blocks = [mlp.ResidualBlock() for _ in range(BLOCKS)]
    for block in self.blocks:
      x = block(x)
    x = tf_keras.layers.LayerNormalization()(x)
    return {
      make.__name__: tf_keras.Model(features, tf_keras.layers.Dense(1)(x))
      for make in FUNCTIONS
    }


def train(steps: int, *, share: bool, callbacks=()) -> list[float]:
  """Trains for `steps` updates; returns the mean loss of each tenth."""
  tf_keras.utils.set_random_seed(0)
  model, losses = Model(), []
  optimizer = tf_keras.optimizers.Adam(comparison.schedule(PEAK, steps))
  if share:
    plan = swe_tf.SharingPlan.from_layers(model.blocks)
    optimizer = swe_tf.SharedWeightsOptimizer(optimizer, plan, steps // 10)
    optimizer.begin()

  class Trainer(UntyingTrainer):
    def train_loop_end(self):
      for callback in callbacks:
        callback.set_model(types.SimpleNamespace(optimizer=optimizer))
        callback.on_train_batch_end(0)
      logs = super().train_loop_end()
      losses.append(float(logs["total_loss"]["training_loss"]))
      return logs

  tasks = [FunctionTask(cfg.TaskConfig(), name=m.__name__) for m in FUNCTIONS]
  task = multitask.MultiTask(tasks)
  loop = steps // 10
  settings = dict(train_steps=steps, steps_per_loop=loop, summary_interval=loop)
  with tempfile.TemporaryDirectory() as model_dir:
    train_lib.run_experiment(
      distribution_strategy=tf.distribute.get_strategy(),
      task=task,
      model=model,
      mode="train",
      params=configs.MultiTaskExperimentConfig(
        trainer=configs.MultiTaskTrainerConfig(
          checkpoint_interval=steps, **settings
        )
      ),
      model_dir=model_dir,
      trainer=Trainer(task, model, optimizer),
    )
  return losses


def main(argv=None) -> None:
  flags = reporting.parse_flags(__doc__, STEPS, argv)
  flags.steps -= flags.steps % 10  # Tenths are loops.
  reporting.report(
    f"Two of Friedman's functions, {BLOCKS} blocks",
    {
      "never shared": train(flags.steps, share=False),
      "shared, then untied": train(flags.steps, share=True),
    },
    metric="sum of mean squared errors",
    steps=flags.steps,
    untie_step=flags.steps // 10,
    path=pathlib.Path(flags.output_dir) / "multitask.png",
  )


if __name__ == "__main__":
  main()
