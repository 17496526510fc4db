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
  vocabulary = vocab_lib.Vocabulary.load(tuned.vocab_file)
  tokenizer = tokenizers.make(vocabulary, tuned.lower_case)
  if tuned.glue:
    names = ("sentence1", "sentence2")[: len(tuned.glue.texts)]
    function = _classifier(tuned, tuned.glue, tokenizer)
  else:
    names, function = ("question", "context"), _reader(tuned, tokenizer)
  signature = [tf.TensorSpec([None], tf.string, name) for name in names]
  module = tf.Module()
  module.model = tuned.model
  module.vocab_file = tf.saved_model.Asset(str(tuned.vocab_file))
  module.serve = tf.function(function, input_signature=signature)
  signatures = {"serving_default": module.serve}
  tf.saved_model.save(module, str(output_dir), signatures=signatures)


def _classifier(tuned, task: glue_tasks.GlueTask, tokenizer):
  """Returns a function of one text, or of two where the task has pairs."""
  special = [tokenizer.vocabulary.id_of(name) for name in ("[CLS]", "[SEP]")]
  room = tuned.config.train_data.seq_length - 1 - len(task.texts)

  def classify(*texts):
    # A pair that is too long loses tokens of the longer text first.
    segments = tf_text.RoundRobinTrimmer(room).trim(
      [tokenizers.tokenize_as_prepared(tokenizer, text) for text in texts]
    )
    word_ids, type_ids = tf_text.combine_segments(segments, *special)
    inputs = {
      "input_word_ids": word_ids.to_tensor(),
      "input_mask": tf.ones_like(word_ids).to_tensor(),
      "input_type_ids": type_ids.to_tensor(),
    }
    logits = tf.cast(tuned.model(inputs, training=False), tf.float32)
    if task.is_regression:
      score = tf.clip_by_value(logits[:, 0], *glue_tasks.SCORE_RANGE)
      return {"logits": logits, "score": score}
    label = tf.gather(tf.constant(task.labels), tf.argmax(logits, axis=1))
    probabilities = tf.nn.softmax(logits)
    return {"logits": logits, "probabilities": probabilities, "label": label}

  return classify


def _reader(tuned, tokenizer):
  """Returns a function of questions and the paragraphs that they are about."""
  config, data = tuned.config, tuned.config.train_data
  answer = squad_answers.make_answer_fn(
    lambda inputs: tuned.model(inputs, training=False),
    tokenizer,
    squad_questions.Windows(
      max_seq_length=data.seq_length,
      max_query_length=data.query_length,
      doc_stride=data.doc_stride,
    ),
    n_best_size=config.n_best_size,
    max_answer_length=config.max_answer_length,
  )

  def read(question, context):
    outputs = answer(question, context)
    if data.version_2_with_negative:
      is_kept = outputs["null_odds"] <= tuned.threshold
      outputs["best_answer"] = outputs["answer"]
      outputs["answer"] = tf.where(is_kept, outputs["answer"], "")
    else:
      del outputs["null_odds"]  # Such a model has not learned them.
    return outputs

  return read
