"""Fine-tuning on GLUE and SQuAD: a thin layer over Model Garden's two tasks.

Added to them are input that can start at any step, a check that the encoder
fits its checkpoint before it is loaded, a seed, dropout that can be resumed,
and SQuAD scores by the official definitions. Weights are never shared here.
"""

from collections.abc import Collection
import dataclasses
import functools
import os

import tensorflow as tf
import tf_keras

from official.core import config_definitions as cfg
from official.core import task_factory
from official.nlp.data import data_loader_factory
from official.nlp.tasks import question_answering
from official.nlp.tasks import sentence_prediction
from swe_tf import errors
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import resumable
from swe_tf.data.text import tokenizers
from swe_tf.scoring import squad as squad_scores
from swe_tf.tasks import micro_batched
from swe_tf.training import checkpoint
from swe_tf.training import resume


@dataclasses.dataclass
class FineTuningConfig(cfg.TaskConfig):
  """What is added to Model Garden's configs; mix it in before one of them.

  Attributes:
    data_dir: The output directory of `swe prepare glue` or `swe prepare squad`;
      lengths, classes and files follow from it.
    epochs: The number of passes over the training data.
    max_train_examples: How many records to train on, the first ones; 0 for all.
      For SQuAD these are windows, not questions.
    seed: Seeds the heads and dropout; `train_data.seed` seeds the order of the
      data.
    micro_batches: The number of parts into which each replica's batch is cut,
      to make the same update in less memory.
    skip_bad_shards: Whether training continues without files that vanish or
      break; by default it stops and names them.
  """

  data_dir: str = ""
  epochs: float = 3.0
  max_train_examples: int = 0
  seed: int = 0
  micro_batches: int = 1
  skip_bad_shards: bool = False


@dataclasses.dataclass
class GlueConfig(
  FineTuningConfig, sentence_prediction.SentencePredictionConfig
):
  """Sentences and sentence pairs.

  Attributes:
    eval_split: The split to evaluate on; the first dev split if empty.
  """

  eval_split: str = ""


@dataclasses.dataclass
class SquadConfig(FineTuningConfig, question_answering.QuestionAnsweringConfig):
  """Questions about paragraphs."""


class FineTuningTask(micro_batched.MicroBatchedTask):
  """What both tasks have in common; mix it in before Model Garden's task."""

  def build_model(self) -> tf_keras.Model:
    """Builds the model, always the same for a given `task_config.seed`."""
    tf_keras.utils.set_random_seed(self.task_config.seed)
    with resume.dropout_with_state():
      return super().build_model()

  def build_inputs(
    self,
    params,
    input_context=None,
    start_step: int = 0,
    bad_files: Collection[str] = (),
  ):
    """Returns the batches; for training, from global step `start_step` on."""
    if not params.is_training or params.input_path == "dummy":
      return super().build_inputs(params, input_context)
    if not params.input_path:
      raise errors.UsageError(
        f"{self.task_config.data_dir} has no training data."
      )
    limit = self.task_config.max_train_examples or -1
    loader = data_loader_factory.get_data_loader(params)
    reader = resumable.ResumableInputReader(
      params,
      dataset_fn=lambda path: tf.data.TFRecordDataset(path).take(limit),
      bad_files=bad_files,
      decoder_fn=loader._decode,  # pylint: disable=protected-access
      parser_fn=loader._parse,  # pylint: disable=protected-access
    )
    return reader.read(input_context, start_step=start_step)

  def initialize(self, model: tf_keras.Model) -> None:
    """Loads the encoder of `init_checkpoint`, after checking that it fits."""
    checkpoint.check_init_checkpoint(
      self.task_config.init_checkpoint,
      encoder=model.checkpoint_items["encoder"],
    )
    with checkpoint.readable(self.task_config.init_checkpoint):
      super().initialize(model)


@task_factory.register_task_cls(GlueConfig)
class GlueTask(FineTuningTask, sentence_prediction.SentencePredictionTask):
  """Model Garden's sentence prediction; its metrics follow `metric_type`."""

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

  def validation_step(self, inputs, model: tf_keras.Model, metrics=None):
    """See base class; repeats the loss once for every example.

    The trainer takes the mean over what all replicas return. In the last batch
    some replicas have fewer examples than others, or none.
    """
    logs = super().validation_step(inputs, model, metrics)
    count = tf.size(inputs[self.label_field])
    logs[self.loss] = tf.fill([count], logs[self.loss])
    return logs


@functools.lru_cache(maxsize=1)
def read_questions(
  path: str,
  version: str,
  vocab_file: str,
  do_lower_case: bool,
  windows: squad_records.Windows,
):
  """Returns a SQuAD file and its windows, cached for the next run of a sweep.

  Args:
    path: The JSON file.
    version: `1.1` or `2.0`.
    vocab_file: The vocabulary.
    do_lower_case: Whether it is uncased.
    windows: The lengths that the records were made with.
  """
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

  def _preprocess_eval_data(self, params):
    """Returns what the base class would, from data that is already prepared."""
    self._version = "2.0" if params.version_2_with_negative else "1.1"
    self._questions, built = read_questions(
      params.input_path,
      self._version,
      params.vocab_file,
      params.do_lower_case,
      squad_records.Windows(
        max_seq_length=params.seq_length,
        max_query_length=params.query_length,
        doc_stride=params.doc_stride,
      ),
    )
    records = os.path.join(
      params.input_preprocessed_data_path, "eval.tf_record"
    )
    return records, built.examples, built.features

  def answers(self, results) -> squad_records.Answers:
    """Returns the answers from what `aggregate_logs` collected."""
    return squad_records.answers_from_logits(
      squad_records.EvalFeatures(self._eval_examples, self._eval_features),
      results,
      version=self._version,
      do_lower_case=self.task_config.validation_data.do_lower_case,
      n_best_size=self.task_config.n_best_size,
      max_answer_length=self.task_config.max_answer_length,
    )

  def score(self, answers: squad_records.Answers):
    """Scores answers by the official definition, in percent."""
    threshold = self.task_config.null_score_diff_threshold
    return squad_scores.evaluate(
      self._questions,
      answers.texts,
      na_probs=answers.null_odds if self._version == "2.0" else None,
      na_prob_threshold=threshold,
    )

  def reduce_aggregated_logs(self, aggregated_logs, global_step=None):
    """Returns the official scores; Model Garden's drop answers for v2.0."""
    scores = self.score(self.answers(aggregated_logs))
    return {
      name: value for name, value in scores.items() if isinstance(value, float)
    }
