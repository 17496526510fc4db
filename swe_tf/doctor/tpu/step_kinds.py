"""The programs of a run: each phase of its method, and the evaluation.

Builds the real steps of an experiment, with model, loss, metrics and optimizer,
to compile, count or time them. Training itself does not use this.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from official.core import config_definitions as cfg
from official.core import task_factory
from official.core import train_utils
from official.nlp.tasks import masked_lm as stock_masked_lm
from swe_tf.configs import cost
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry
from swe_tf.sharing import wrapper
from swe_tf.tasks import finetuning
from swe_tf.training import phases as phases_lib

# Pre-training has stock's step, the phases of the method, and the evaluation.
STOCK, EVALUATION, FINE_TUNING = "stock", "evaluation", "fine-tuning"
SHARED, UNSHARED = "shared", "unshared"  # The phases of SWE.


class Kind(NamedTuple):
  """A kind of step: its name and the layers that it applies."""

  name: str
  layers: int
  distinct: int  # How many layers have weights of their own.


class Step(NamedTuple):
  """A step, not yet compiled, and what it works on."""

  run: Callable[[Any], Any]  # Runs it once, in a replica context.
  model: tf_keras.Model
  optimizer: Any = None  # An evaluation has none.


def _phases(config: cfg.ExperimentConfig) -> list[catalog.Phase]:
  resolved = catalog.resolve(config)
  size = registry.require_encoder(config.task.as_dict()).size
  return catalog.find(resolved).phases(resolved, size)


def kinds(config: cfg.ExperimentConfig) -> list[Kind]:
  """Returns the kinds of steps of a run, in order."""
  layers = registry.require_encoder(config.task.as_dict()).size.num_layers
  names = [FINE_TUNING, EVALUATION]
  phases = []
  if hasattr(config.task, "sharing"):
    names[0], phases = STOCK, _phases(config)
  first, last = (Kind(name, layers, layers) for name in names)
  between = [Kind(p.name, p.size.num_layers, p.distinct_layers) for p in phases]
  return [first, *between, last]


def _without_questions(task: cfg.TaskConfig) -> cfg.TaskConfig:
  """Returns a copy; to read the questions of SQuAD would take minutes."""
  return task.replace(validation_data={"input_path": ""})


def make_inputs(
  config: cfg.ExperimentConfig,
  batch_size: int | None = None,
  kind: str = STOCK,
) -> Any:
  """Returns a batch for a kind of step, by default as large as the global one.

  For pre-training it has random tokens; for fine-tuning it is all ones, in the
  shapes of the task's own input.
  """
  name = "validation_data" if kind == EVALUATION else "train_data"
  data = getattr(config.task, name)
  batch_size = batch_size or data.global_batch_size
  if not hasattr(config.task, "sharing"):
    task = task_factory.get_task(_without_questions(config.task))
    if isinstance(config.task, finetuning.SquadConfig):
      folder = config.task.validation_data.input_preprocessed_data_path
      task.set_preprocessed_eval_input_path(f"{folder}/eval.tf_record")
    replicas = data.global_batch_size // batch_size
    context = tf.distribute.InputContext(num_replicas_in_sync=replicas)
    return tf.nest.map_structure(
      lambda spec: tf.ones(spec.shape, spec.dtype),
      task.build_inputs(data, context).element_spec,
    )
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
  of `task.sharing.mode=none`. A phase is that of the run's own method, entered
  as the trainer enters it, without the steps between.
  """
  task_config = _without_questions(config.task)
  if kind == STOCK:
    task_config.sharing = config_lib.SharingConfig(mode=catalog.NONE)
    task_config.growth = config_lib.GrowthConfig()
  task = task_factory.get_task(task_config)
  model = task.build_model()
  if kind == EVALUATION:
    metrics = task.build_metrics(training=False)

    def evaluate(inputs):
      copy = tf.nest.map_structure(tf.identity, inputs)  # Stock takes some out.
      return task.validation_step(copy, model, metrics)

    return Step(evaluate, model)
  optimizer = train_utils.create_optimizer(task, config)
  if kind == STOCK and config.task.micro_batches == 1:
    task = stock_masked_lm.MaskedLMTask(task_config)
  elif kind not in (STOCK, FINE_TUNING):
    training = task.apply_method(
      phases_lib.Ingredients(
        task=task, model=model, optimizer=optimizer, config=config
      )
    )
    optimizer = training.optimizer
    training.phases.begin()
    step = 0
    for phase in _phases(config):
      optimizer.iterations.assign(step)
      training.phases.change_if_due(step)
      if phase.name == kind:
        break
      step += phase.steps
    model = training.phases.model or model
  if kind != FINE_TUNING:  # Whose task makes all of it.
    optimizer = wrapper.stack_optimizers(optimizer, config)
  metrics = task.build_metrics(training=True)

  def run(inputs):
    return task.train_step(
      inputs, model=model, optimizer=optimizer, metrics=metrics
    )[task.loss]

  return Step(run, model, optimizer)
