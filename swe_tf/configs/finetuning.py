"""`swe/glue` and `swe/squad`: fine-tuning as the paper does it (section 5.1).

Three epochs; the learning rate rises linearly for the first 10% of the steps
and then falls linearly to 0. Only `task.data_dir` and `task.init_checkpoint`
have to be set: steps, lengths, classes and the architecture follow from them.

The architecture and the vocabulary are found with the checkpoint
(`modeling.checkpoint_files`), so nobody has to retype an architecture, or
fine-tunes on token ids that mean other tokens.
"""

import dataclasses

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.nlp.data import question_answering_dataloader
from official.nlp.data import sentence_prediction_dataloader
from official.nlp.tasks import question_answering
from official.nlp.tasks import sentence_prediction
from swe_tf import errors
from swe_tf.configs import experiment
from swe_tf.configs import limits
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry
from swe_tf.tasks import finetuning

_WARMUP_FRACTION = 0.1
# Holds all but the largest data sets whole: records are in the order of the
# official files, where SQuAD has all questions of an article together.
_SHUFFLE_BUFFER = 100_000
# A few examples may fill a batch together, but reading them this often hangs.
_PASSES_PER_BATCH = 100


def check_vocabulary(
  source: checkpoint_files.EncoderSource, data: manifest.PreparedData
) -> None:
  """Raises `UsageError` unless data and encoder have the same vocabulary."""
  if source.vocab_file:
    vocabulary = vocab_lib.Vocabulary.load(str(source.vocab_file))
    if vocabulary.sha256 != data.meta["vocab_sha256"]:
      raise errors.UsageError(
        f"{data.path}: the data has another vocabulary ("
        f"{data.meta['vocab_size']:,} tokens) than the encoder of "
        f"{source.checkpoint} ({len(vocabulary):,} tokens); prepare the data "
        f"with the vocabulary {source.vocab_file}."
      )
  _check_fits_data(source.encoder, data, exact_vocab=not source.vocab_file)


def _check_fits_data(
  encoder: registry.Encoder,
  data: manifest.PreparedData,
  exact_vocab: bool = False,
) -> None:
  """Raises `UsageError` unless the data's ids and positions fit an encoder.

  If the encoder's vocabulary is not available, the most that can be asked for
  is that it has as many tokens: `exact_vocab`.
  """
  size, known = data.meta["vocab_size"], encoder.vocab_size
  if known and (size > known or exact_vocab and size != known):
    raise errors.UsageError(
      f"{data.path}: the data has a vocabulary of {size:,} tokens, the encoder "
      f"one of {known:,}; prepare the data with the vocabulary that the "
      "encoder was trained with."
    )
  length, positions = data.meta["max_seq_length"], encoder.positions
  if positions and length > positions:
    raise errors.UsageError(
      f"{data.path}: max_seq_length is {length}, but the encoder has only "
      f"{positions} positions; prepare the data with a max_seq_length of "
      f"{positions} or less."
    )


@dataclasses.dataclass
class FineTuningConfig(experiment.CheckedExperimentConfig):
  """An experiment that needs only the data and the checkpoint to be set."""

  def validate(self):
    """Fills in what follows from the data and the checkpoint, and checks it."""
    super().validate()
    task = self.task
    if task.validation_data.drop_remainder:
      errors.fault(
        "task.validation_data.drop_remainder is true, so the last examples "
        "would not be scored; set it to false."
      )
    with errors.part():
      limits.check(self, follows_data=True)
    data = manifest.read(task.data_dir)
    if task.init_checkpoint:
      source = checkpoint_files.find_encoder(task.init_checkpoint)
      # The encoder of the config counts, if it was set.
      if task.model.encoder.as_dict() == finetuning.default_encoder().as_dict():
        task.model.encoder = source.encoder.config
      check_vocabulary(source, data)
    else:
      encoder = registry.encoder_of(task.as_dict())
      if encoder is not None:
        _check_fits_data(encoder, data)
    if isinstance(task, finetuning.SquadConfig):
      _follow_squad_data(task, data)
    else:
      _follow_glue_data(task, data)
    # Evaluation alone needs a schedule too, as the driver makes an optimizer.
    size = data.train.size if data.train else 0
    if data.train:
      task.train_data.input_path = data.train.path
      size = min(task.max_train_examples or size, size)
      batch = task.train_data.global_batch_size
      if batch > _PASSES_PER_BATCH * size:
        raise errors.UsageError(
          f"task.train_data.global_batch_size ({batch}) is more than "
          f"{_PASSES_PER_BATCH} times the {size} example(s); lower it."
        )
    _follow_train_size(self, size)


def _follow_glue_data(
  task: finetuning.GlueConfig, data: manifest.PreparedData
) -> None:
  """Sets classes, metric, lengths and files from the GLUE manifest."""
  if data.is_squad:
    raise errors.UsageError(
      f"{data.directory} is {data.task}; use the experiment swe/squad."
    )
  meta = data.meta
  task.model.num_classes = meta["num_labels"]
  task.metric_type = glue_tasks.find_task(data.task).model_garden_metric
  for params in (task.train_data, task.validation_data):
    params.seq_length = meta["max_seq_length"]
    params.label_type = meta["label_type"]
  if not task.eval_split:
    splits = data.splits_of("dev", "diagnostic")
    task.eval_split = next((s.name for s in splits if s.labelled), "")
  split = data.splits.get(task.eval_split)
  if split is None or not split.labelled:
    raise errors.UsageError(
      f"{data.directory} has no split {task.eval_split or 'dev'!r} with "
      f"labels to evaluate on, only {', '.join(data.splits)}."
    )
  task.validation_data.input_path = split.path


def _follow_squad_data(
  task: finetuning.SquadConfig, data: manifest.PreparedData
) -> None:
  """Sets lengths, vocabulary and files from the SQuAD manifest."""
  if not data.is_squad or "eval" not in data.splits:
    raise errors.UsageError(
      f"{data.directory} is {data.task} with {', '.join(data.splits)}, but "
      "swe/squad needs SQuAD with a split to evaluate on."
    )
  for params in (task.train_data, task.validation_data):
    params.seq_length = data.meta["max_seq_length"]
    params.query_length = data.meta["max_query_length"]
    params.doc_stride = data.meta["doc_stride"]
    params.do_lower_case = data.meta["do_lower_case"]
    params.version_2_with_negative = data.meta["version_2_with_negative"]
    params.vocab_file = str(data.directory / "vocab.txt")
  # Evaluation reads answers from the first, and windows from the second.
  task.validation_data.input_path = str(data.directory / "eval.json")
  task.validation_data.input_preprocessed_data_path = str(data.directory)


def _follow_train_size(config: cfg.ExperimentConfig, size: int) -> None:
  """Sets the steps, and what depends on them, from the number of examples."""
  trainer = config.trainer
  if not trainer.train_steps:
    batch_size = config.task.train_data.global_batch_size
    trainer.train_steps = max(1, int(config.task.epochs * size / batch_size))
  steps = trainer.train_steps
  warmup = trainer.optimizer_config.warmup.get()
  if warmup.warmup_steps is None:
    warmup.warmup_steps = round(_WARMUP_FRACTION * steps)
  experiment.follow_train_steps(config)
  if not trainer.steps_per_loop:
    trainer.steps_per_loop = max(1, min(100, steps // 20))
  trainer.summary_interval = trainer.summary_interval or trainer.steps_per_loop
  # An interrupted run loses at most a quarter of its time.
  trainer.checkpoint_interval = (
    trainer.checkpoint_interval or 5 * trainer.steps_per_loop
  )
  trainer.validation_interval = trainer.validation_interval or steps


def _experiment(task_cls, model_cls, data_cls, batch_size: int):
  optimizer_config = experiment.paper_optimization()
  optimizer_config.learning_rate.polynomial.initial_learning_rate = 3e-5
  return FineTuningConfig(
    task=task_cls(
      model=model_cls(encoder=finetuning.default_encoder()),
      train_data=data_cls(
        is_training=True,
        global_batch_size=batch_size,
        shuffle_buffer_size=_SHUFFLE_BUFFER,
        seed=0,
      ),
      validation_data=data_cls(
        is_training=False, global_batch_size=batch_size, drop_remainder=False
      ),
    ),
    trainer=cfg.TrainerConfig(
      steps_per_loop=0,
      summary_interval=0,
      checkpoint_interval=0,
      validation_interval=0,
      max_to_keep=1,
      optimizer_config=optimizer_config,
    ),
    restrictions=list(experiment.RESTRICTIONS),
  )


@exp_factory.register_config_factory("swe/glue")
def glue() -> cfg.ExperimentConfig:
  """Sentences and sentence pairs, with BERT's batch size."""
  return _experiment(
    finetuning.GlueConfig,
    sentence_prediction.ModelConfig,
    sentence_prediction_dataloader.SentencePredictionDataConfig,
    batch_size=32,
  )


@exp_factory.register_config_factory("swe/squad")
def squad() -> cfg.ExperimentConfig:
  """Questions about paragraphs, with Model Garden's batch size."""
  return _experiment(
    finetuning.SquadConfig,
    question_answering.ModelConfig,
    question_answering_dataloader.QADataConfig,
    batch_size=48,
  )
