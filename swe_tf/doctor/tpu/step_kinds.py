"""The three kinds of training step: stock, shared and unshared.

Builds the real step of an experiment, with its model, loss, metrics and
optimizer, to compile, count or time it. Training itself does not use this.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from official.core import config_definitions as cfg
from official.core import train_utils
from official.nlp.tasks import masked_lm as stock_masked_lm
from swe_tf.configs import cost
from swe_tf.methods import plans
from swe_tf.modeling import registry
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.tasks import masked_lm

STOCK, SHARED, UNSHARED = KINDS = ("stock", "shared", "unshared")

Inputs = Mapping[str, tf.Tensor]


class Step(NamedTuple):
  """A training step, not yet compiled, and what it works on."""

  run: Callable[[Inputs], Any]  # Makes one update, in a replica context.
  model: tf_keras.Model
  optimizer: Any
  plan: plan_lib.SharingPlan | None  # The stock step has none.


class _WithoutData(masked_lm.SharedMaskedLMTask):
  """The task, for a step that gets its batches from elsewhere."""

  def check_data(self) -> list[str]:
    return []

  def require_method(self, optimizer) -> None:
    """Accepts the bare optimizer of a stock step too."""


def make_inputs(
  config: cfg.ExperimentConfig, batch_size: int | None = None
) -> dict[str, tf.Tensor]:
  """Returns a batch of random tokens, by default as large as the global one."""
  data = config.task.train_data
  batch_size = batch_size or data.global_batch_size
  predictions = cost.predictions_per_sequence(data)
  encoder = registry.require_encoder(config.task.as_dict())
  ids = tf.random.uniform(
    [batch_size, data.seq_length], 0, encoder.vocab_size, tf.int32
  )
  return dict(
    input_word_ids=ids,
    input_mask=tf.ones_like(ids),
    input_type_ids=tf.zeros_like(ids),
    masked_lm_positions=tf.tile([tf.range(predictions)], [batch_size, 1]),
    masked_lm_ids=ids[:, :predictions],
    masked_lm_weights=tf.ones([batch_size, predictions]),
  )


def build_step(kind: str, config: cfg.ExperimentConfig) -> Step:
  """Builds the model, the optimizer and the step of one kind.

  `stock` is Model Garden's task with the bare optimizer of the config; only the
  encoder is ours. Model Garden has no micro-batches: with them it is the step
  of `task.sharing.mode=none`. `shared` (with tied weights) and `unshared` are
  the phases of SWE with the units of `config.task.sharing`.
  """
  task = _WithoutData(config.task)
  model = task.build_model()
  optimizer, plan = train_utils.create_optimizer(task, config), None
  if kind != STOCK:
    plan = plans.plan_of(model, config.task.sharing)
    optimizer = optimizer_lib.SharedWeightsOptimizer(
      optimizer,
      plan,
      untie_step=0 if kind == UNSHARED else None,
      cosine_interval=config.trainer.summary_interval,
    )
    if kind == SHARED:
      plan.tie_weights()
  elif config.task.micro_batches == 1:
    task = stock_masked_lm.MaskedLMTask(config.task)
  metrics = task.build_metrics(training=True)

  def run(inputs: Inputs):
    return task.train_step(
      inputs, model=model, optimizer=optimizer, metrics=metrics
    )["loss"]

  return Step(run, model, optimizer, plan)
