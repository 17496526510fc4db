"""Fine-tuning on GLUE and SQuAD: a thin layer over Model Garden's two tasks.

Added to them are input that can start at any step, a check that the encoder
fits its checkpoint before it is loaded, a seed, dropout that can be resumed,
and SQuAD scores by the official definitions. Weights are never shared here.
"""

import dataclasses
import functools
import types

import tensorflow as tf
import tf_keras

from official.core import task_factory
from official.nlp.configs import encoders
from official.nlp.data import data_loader_factory
from official.nlp.serving import export_savedmodel
from official.nlp.serving import serving_modules
from official.nlp.tasks import question_answering
from official.nlp.tasks import sentence_prediction
from swe_tf import errors
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import resumable
from swe_tf.data.text import tokenizers
from swe_tf.modeling import registry
from swe_tf.scoring import squad as squad_scores
from swe_tf.tasks import mixins

# A feature of evaluation: 1, and 0 for what only fills up the last batch.
IS_REAL = "is_real"
# The name that the trainer logs, were it the one to take the mean.
_VALIDATION_LOSS = "validation_loss"


def default_encoder() -> encoders.EncoderConfig:
  """Returns an encoder whose `any` is ours.

  Model Garden's default cannot be built from a `params.yaml`: only the class of
  `any` says how, and that one stays when a file overrides the fields.
  """
  return registry.bert({}).config


@dataclasses.dataclass
class FineTuningConfig(mixins.TaskConfig):
  """What is added to Model Garden's configs; mix it in before one of them.

  Attributes:
    data_dir: The output directory of `swe prepare glue` or `swe prepare squad`;
      lengths, classes and files follow from it.
    epochs: The number of passes over the training data.
    max_train_examples: How many records to train on, the first ones; 0 for all.
      For SQuAD these are windows, not questions.
  """

  data_dir: str = ""
  epochs: float = 3.0
  max_train_examples: int = 0


@dataclasses.dataclass
class GlueConfig(
  FineTuningConfig, sentence_prediction.SentencePredictionConfig
):
  """Sentences and sentence pairs."""

  model: sentence_prediction.ModelConfig = dataclasses.field(
    default_factory=lambda: sentence_prediction.ModelConfig(
      encoder=default_encoder()
    )
  )
  eval_split: str = ""  # The first dev split.


@dataclasses.dataclass
class SquadConfig(FineTuningConfig, question_answering.QuestionAnsweringConfig):
  """Questions about paragraphs."""

  model: question_answering.ModelConfig = dataclasses.field(
    default_factory=lambda: question_answering.ModelConfig(
      encoder=default_encoder()
    )
  )


class FineTuningTask(mixins.MicroBatchedTask):
  """What both tasks have in common; mix it in before Model Garden's task."""

  def build_inputs(self, params, input_context=None, start_step: int = 0):
    """Returns the batches; for training, from global step `start_step` on."""
    if params.input_path == "dummy":
      return super().build_inputs(params, input_context)
    if not params.is_training:
      dataset = super().build_inputs(params, input_context)
      context = input_context or tf.distribute.InputContext()
      return _whole_batches(dataset, params.global_batch_size, context)
    if not params.input_path:
      place = self.task_config.data_dir
      raise errors.UsageError(f"{place} has no training data.")
    limit = self.task_config.max_train_examples or -1
    loader = data_loader_factory.get_data_loader(params)
    reader = resumable.ResumableInputReader(
      params,
      dataset_fn=lambda path: tf.data.TFRecordDataset(path).take(limit),
      decoder_fn=loader._decode,  # pylint: disable=protected-access
      parser_fn=loader._parse,  # pylint: disable=protected-access
    )
    return reader.read(input_context, start_step=start_step)

  def loaded_items(self, model: tf_keras.Model):
    return {"encoder": model.checkpoint_items["encoder"]}


def _whole_batches(
  dataset: tf.data.Dataset,
  global_batch_size: int,
  context: tf.distribute.InputContext,
) -> tf.data.Dataset:
  """Fills up the last batches of all replicas with copies of the last example.

  A TPU needs one shape for all batches. Of SQuAD, windows that come twice are
  known by their ids.
  """
  batch = context.get_per_replica_batch_size(global_batch_size)
  local = context.num_replicas_in_sync // context.num_input_pipelines

  def fill(*element):
    count = tf.shape(tf.nest.flatten(element)[0])[0]
    rows = tf.range(batch * local)
    nearest = tf.minimum(rows, count - 1)
    whole = tf.nest.map_structure(lambda x: tf.gather(x, nearest), element)
    if len(whole) > 1:
      return whole
    return whole[0] | {IS_REAL: tf.cast(rows < count, tf.float32)}

  groups = dataset.rebatch(batch * local).map(fill)
  return groups.rebatch(batch, drop_remainder=True)


@task_factory.register_task_cls(GlueConfig)
class GlueTask(FineTuningTask, sentence_prediction.SentencePredictionTask):
  """Model Garden's sentence prediction; its metrics follow `metric_type`."""

  real_field = IS_REAL

  def build_losses(self, labels, model_outputs, aux_losses=None) -> tf.Tensor:
    """See base class; gives the labels of a regression the right shape.

    The base class has labels [batch] and outputs [batch, 1], so their
    difference is [batch, batch]: STS-B would learn no more than the mean score.
    """
    if self.task_config.model.num_classes == 1:
      labels = labels | {
        self.label_field: tf.reshape(labels[self.label_field], [-1, 1])
      }
    return super().build_losses(labels, model_outputs, aux_losses)

  def build_metrics(self, training=None):
    """See base class; the trainer cannot leave out what is not real."""
    metrics = super().build_metrics(training)
    if training:
      return metrics
    return [*metrics, tf_keras.metrics.Mean(_VALIDATION_LOSS)]

  def process_metrics(self, metrics, labels, model_outputs):
    """See base class; an evaluation leaves out what is not real."""
    real, takers = labels.get(IS_REAL), []
    for metric in metrics:
      take = functools.partial(_update, metric, real)
      takers.append(types.SimpleNamespace(name=metric.name, update_state=take))
      if metric.name == _VALIDATION_LOSS:
        # Of each example; `build_losses` gives only their mean.
        label = labels[self.label_field]
        outputs = tf.cast(model_outputs, tf.float32)
        if self.task_config.model.num_classes == 1:
          loss = tf_keras.losses.mean_squared_error(label[:, None], outputs)
        else:
          loss = tf_keras.losses.sparse_categorical_crossentropy(
            label, outputs, from_logits=True
          )
        take(loss)
    super().process_metrics(takers, labels, model_outputs)

  def validation_step(self, inputs, model: tf_keras.Model, metrics=None):
    """See base class; the loss is among the metrics."""
    logs = super().validation_step(inputs, model, metrics)
    del logs[self.loss]
    return logs | {IS_REAL: inputs[IS_REAL]}

  def aggregate_logs(self, state=None, step_outputs=None):
    real = step_outputs[IS_REAL]
    kept = {
      name: [tf.boolean_mask(v, r > 0) for v, r in zip(values, real)]
      for name, values in step_outputs.items()
    }
    return super().aggregate_logs(state, kept)


def _update(metric: tf_keras.metrics.Metric, weights, *values) -> None:
  """Updates a metric; Keras's AUC takes weights only with outputs [batch]."""
  if weights is not None and metric.name == "auc":
    values = tuple(tf.reshape(value, [-1]) for value in values)
  metric.update_state(*values, sample_weight=weights)


@functools.lru_cache(maxsize=1)
def read_questions(
  path: str,
  version: str,
  vocab_file: str,
  do_lower_case: bool,
  windows: squad_records.Windows,
):
  """Returns a SQuAD file and its windows; cached for the runs of a sweep."""
  tokenizer = tokenizers.CachedTokenizer(vocab_file, do_lower_case)
  return (
    squad_questions.read_squad_file(path, version),
    squad_records.build_eval_features(
      path, version=version, tokenizer=tokenizer, windows=windows
    ),
  )


@task_factory.register_task_cls(SquadConfig)
class SquadTask(FineTuningTask, question_answering.QuestionAnsweringTask):
  """Model Garden's question answering, scored by `swe_tf.scoring`."""

  def build_inputs(self, params, input_context=None, start_step: int = 0):
    """See base class; every worker evaluates all windows.

    A worker sees no logits of another, and a score needs them all.
    """
    if input_context and not params.is_training:
      replicas = input_context.num_replicas_in_sync
      input_context = tf.distribute.InputContext(num_replicas_in_sync=replicas)
    return super().build_inputs(params, input_context, start_step)

  def _preprocess_eval_data(self, params):
    """Returns what the base class would, from data that is already prepared."""
    self._version = "2.0" if params.version_2_with_negative else "1.1"
    windows = squad_records.Windows(
      max_seq_length=params.seq_length,
      max_query_length=params.query_length,
      doc_stride=params.doc_stride,
    )
    self._questions, built = read_questions(
      params.input_path,
      self._version,
      params.vocab_file,
      params.do_lower_case,
      windows,
    )
    folder = params.input_preprocessed_data_path
    return f"{folder}/eval.tf_record", *built

  def answers(self, results) -> squad_records.Answers:
    """Returns the answers from what `aggregate_logs` collected."""
    return squad_records.answers_from_logits(
      (self._eval_examples, self._eval_features),
      results,
      version=self._version,
      do_lower_case=self.task_config.validation_data.do_lower_case,
      n_best_size=self.task_config.n_best_size,
      max_answer_length=self.task_config.max_answer_length,
    )

  def score(self, answers: squad_records.Answers):
    """Scores answers by the official definition, in percent."""
    return squad_scores.evaluate(
      self._questions,
      answers.texts,
      na_probs=answers.null_odds if self._version == "2.0" else None,
      na_prob_threshold=self.task_config.null_score_diff_threshold,
    )

  def reduce_aggregated_logs(self, aggregated_logs, global_step=None):
    """Returns the official scores; Model Garden's drop answers for v2.0."""
    scores = self.score(self.answers(aggregated_logs))
    found = {name: v for name, v in scores.items() if isinstance(v, float)}
    # Stock's name and scale: its configs select the best checkpoint by it.
    return found | {"final_f1": found.get("best_f1", found["f1"]) / 100}


# Where `official.nlp.serving.export_savedmodel` looks for what serves a task.
export_savedmodel.SERVING_MODULES |= {
  GlueTask: serving_modules.SentencePrediction,
  SquadTask: serving_modules.QuestionAnswering,
}
