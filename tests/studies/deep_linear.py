"""A made-up case in which sharing must win: Theorem 1, as an experiment.

    swe pilot --plugins=tests.studies.deep_linear --experiment=test/deep_linear

A deep linear network learns a positive definite matrix from full batches. The
baseline starts zero-asymmetric (Wu et al. 2019): all layers the identity, the
last one zero. Sharing starts all layers as the identity, and its loss decays L
times as fast (Theorem 1). With a low rate and few steps that decides.
"""

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from official.core import base_task
from official.core import config_definitions as cfg
from official.core import exp_factory
from official.core import task_factory
from official.modeling import optimization
from official.modeling.hyperparams import base_config
from swe_tf.configs import experiment
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.tasks import mixins

LAYERS, WIDTH, BATCH = 6, 4, 16


@dataclasses.dataclass
class DeepLinearModel(base_config.Config):
  num_layers: int = LAYERS


@dataclasses.dataclass
class DeepLinearData(cfg.DataConfig):
  """Made up; the fields are those that the cost model asks for."""

  global_batch_size: int = BATCH
  seq_length: int = 1
  max_predictions_per_seq: int = 1
  use_next_sentence_label: bool = False
  seed: int = 0


def _new(cls):
  return dataclasses.field(default_factory=cls)


@dataclasses.dataclass
class DeepLinearConfig(cfg.TaskConfig):
  model: DeepLinearModel = _new(DeepLinearModel)
  train_data: cfg.DataConfig = _new(DeepLinearData)
  validation_data: cfg.DataConfig = _new(DeepLinearData)
  sharing: config_lib.SharingConfig = _new(config_lib.SharingConfig)
  growth: config_lib.GrowthConfig = _new(config_lib.GrowthConfig)
  seed: int = 0


class _Base(base_task.Task):
  """What a task is without sharing."""

  def build_model(self):
    """Returns square matrices, one after the other, zero-asymmetric."""
    kinds = ["identity"] * (self.task_config.model.num_layers - 1) + ["zeros"]
    blocks = [
      tf_keras.layers.Dense(WIDTH, use_bias=False, kernel_initializer=kind)
      for kind in kinds
    ]
    x = inputs = tf_keras.Input((WIDTH,))
    for block in blocks:
      x = block(x)
    model = tf_keras.Model(inputs, x)
    model.blocks, model.checkpoint_items = blocks, {}
    return model

  def build_inputs(self, params, input_context=None, start_step: int = 0):
    del input_context, start_step
    rng = np.random.default_rng(params.seed or 0)
    x = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    # Positive definite, and the same for all seeds.
    rows = np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    target = np.eye(WIDTH) + 0.1 * rows @ rows.T
    y = (x @ target).astype(np.float32)
    data = tf.data.Dataset.from_tensors((x, y))
    return data.repeat() if params.is_training else data

  def build_metrics(self, training=None):
    return []

  def build_losses(self, labels, model_outputs, aux_losses=None):
    return 0.5 * tf.reduce_mean(tf.square(model_outputs - labels))


@task_factory.register_task_cls(DeepLinearConfig)
class DeepLinearTask(mixins.SharingTask, _Base):
  """With it."""


class DeepLinear(registry.Encoder):
  """Where a deep linear network keeps its layers."""

  @staticmethod
  def find(task):
    model = task.get("model") or {}
    return model if model.keys() == {"num_layers"} else None

  @staticmethod
  def blocks(model):
    return list(getattr(model, "blocks", ()))

  @property
  def size(self):
    return sizes.Size(self.params["num_layers"], WIDTH, 1, WIDTH)

  def overrides(self, **fields):
    return {"model": fields}


registry.register(DeepLinear)


@exp_factory.register_config_factory("test/deep_linear")
def deep_linear() -> cfg.ExperimentConfig:
  """Plans a run of 1,000 steps of gradient descent at a low rate."""
  rate = {"initial_learning_rate": 0.02, "end_learning_rate": 0.0}
  rate["decay_steps"] = None
  return experiment.SharingExperimentConfig(
    task=DeepLinearConfig(
      train_data=DeepLinearData(is_training=True),
      validation_data=DeepLinearData(is_training=False),
    ),
    runtime=cfg.RuntimeConfig(distribution_strategy="off"),
    trainer=cfg.TrainerConfig(
      train_steps=1000,
      steps_per_loop=50,
      summary_interval=50,
      checkpoint_interval=500,
      validation_interval=50,
      validation_steps=1,
      optimizer_config=optimization.OptimizationConfig(
        {
          "optimizer": {"type": "sgd", "sgd": {"momentum": 0.0}},
          "learning_rate": {"type": "polynomial", "polynomial": rate},
          "warmup": {"type": "linear", "linear": {"warmup_steps": None}},
        }
      ),
    ),
  )
