"""Fine-tuned models as SavedModels: from strings to labels or answers.

The tokenizer is inside, so a server needs TensorFlow and TensorFlow Text only.
Model Garden's serving modules return logits, and read SQuAD as token ids.
"""

import pathlib

import tensorflow as tf
import tensorflow_text as tf_text

from swe_tf.convert import finetuned
from swe_tf.convert import squad_answers
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib


def write(output_dir: pathlib.Path, tuned: finetuned.FineTuned) -> None:
  """Writes a SavedModel with the one signature `serving_default`."""
  module = tf.Module()
  module.model = tuned.model
  module.vocab_file = tf.saved_model.Asset(str(tuned.vocab_file))
  serve = _classifier(tuned) if tuned.glue else _reader(tuned)
  module.serve = serve  # Keeps what the signature uses.
  tf.saved_model.save(
    module, str(output_dir), signatures={"serving_default": serve}
  )


def _tokenizer(tuned: finetuned.FineTuned) -> tokenizers.Tokenizer:
  vocabulary = vocab_lib.Vocabulary.load(tuned.vocab_file)
  return tokenizers.make(vocabulary, tuned.lower_case)


def _classifier(tuned: finetuned.FineTuned):
  """Returns a function of one text, or of two where the task has pairs."""
  assert tuned.glue is not None
  task, tokenizer = tuned.glue, _tokenizer(tuned)
  special = [tokenizer.vocabulary.id_of(name) for name in ("[CLS]", "[SEP]")]
  length = tuned.config.train_data.seq_length
  names = ("sentence1", "sentence2")[: len(task.texts)]

  @tf.function(
    input_signature=[tf.TensorSpec([None], tf.string, name) for name in names]
  )
  def classify(*texts):
    segments = [
      tokenizers.tokenize_as_prepared(tokenizer, text) for text in texts
    ]
    # A pair that is too long loses tokens of the longer text first.
    trimmer = tf_text.RoundRobinTrimmer(length - 1 - len(texts))
    word_ids, type_ids = tf_text.combine_segments(
      trimmer.trim(segments), *special
    )
    inputs = {
      "input_word_ids": word_ids.to_tensor(),
      "input_mask": tf.ones_like(word_ids).to_tensor(),
      "input_type_ids": type_ids.to_tensor(),
    }
    logits = tf.cast(tuned.model(inputs, training=False), tf.float32)
    if task.is_regression:
      score = tf.clip_by_value(logits[:, 0], *glue_tasks.SCORE_RANGE)
      return {"logits": logits, "score": score}
    return {
      "logits": logits,
      "probabilities": tf.nn.softmax(logits),
      "label": tf.gather(tf.constant(task.labels), tf.argmax(logits, axis=1)),
    }

  return classify


def _reader(tuned: finetuned.FineTuned):
  """Returns a function of questions and the paragraphs that they are about."""
  config = tuned.config
  answer = squad_answers.make_answer_fn(
    lambda inputs: tuned.model(inputs, training=False),
    _tokenizer(tuned),
    squad_questions.Windows(
      max_seq_length=config.train_data.seq_length,
      max_query_length=config.train_data.query_length,
      doc_stride=config.train_data.doc_stride,
    ),
    n_best_size=config.n_best_size,
    max_answer_length=config.max_answer_length,
  )

  @tf.function(
    input_signature=[
      tf.TensorSpec([None], tf.string, name) for name in ("question", "context")
    ]
  )
  def read(question, context):
    outputs = answer(question, context)
    null_odds = outputs.pop("null_odds")
    if not config.train_data.version_2_with_negative:
      return outputs
    best = outputs.pop("answer")
    is_kept = null_odds <= tuned.threshold
    return {
      **outputs,
      "answer": tf.where(is_kept, best, ""),
      "best_answer": best,
      "null_odds": null_odds,
    }

  return read
