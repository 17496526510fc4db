"""SavedModels: from strings to labels, answers or an encoder's states.

The tokenizer is inside, so a server needs TensorFlow and TensorFlow Text only.
Model Garden's serving modules return logits, and read SQuAD as token ids; its
`export_tfhub` cannot read the checkpoint of a training run.
"""

import pathlib

import tensorflow as tf
import tensorflow_text as tf_text
import tf_keras

from swe_tf.convert import finetuned
from swe_tf.convert import squad_answers
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files

_SHOWN_INPUTS = ("input_word_ids", "input_mask")


def write(output_dir: pathlib.Path, tuned: finetuned.FineTuned) -> None:
  """Writes a fine-tuned model, with the one signature `serving_default`."""
  vocabulary = vocab_lib.Vocabulary.load(tuned.vocab_file)
  tokenizer = tokenizers.make(vocabulary, tuned.lower_case)
  if tuned.glue:
    names = ("sentence1", "sentence2")[: len(tuned.glue.texts)]
    function = _classifier(tuned, tuned.glue, tokenizer)
  else:
    names, function = ("question", "context"), _reader(tuned, tokenizer)
  module = tf.Module()
  module.model = tuned.model
  _save(module, output_dir, tuned.vocab_file, names, function)


def write_encoder(
  output_dir: pathlib.Path, loaded: checkpoint_files.LoadedEncoder
) -> None:
  """Writes an encoder; called, it takes ids, like TF Hub's text encoders."""
  # Called anew: the network's own outputs have no "default".
  outputs = loaded.network(loaded.network.inputs)
  outputs["default"] = outputs["pooled_output"]
  model = tf_keras.Model(inputs=loaded.network.inputs, outputs=outputs)
  if not loaded.vocab_file:
    tf.saved_model.save(model, str(output_dir))
    return
  vocabulary = vocab_lib.Vocabulary.load(loaded.vocab_file)
  tokenizer = tokenizers.make(vocabulary, vocabulary.is_lower_case)
  length = loaded.network.get_config()["max_sequence_length"]

  def encode(text):
    # Longer texts are cut: there are no more positions.
    ids = tokenizer.tokenize(text)[:, : length - 2]
    inputs = _inputs([ids], vocabulary)
    outputs = model(inputs)
    names = ("sequence_output", "pooled_output")
    shown = {name: outputs[name] for name in names}
    return shown | {name: inputs[name] for name in _SHOWN_INPUTS}

  _save(model, output_dir, loaded.vocab_file, ("text",), encode)


def _save(module, output_dir, vocab_file, names, function) -> None:
  """Saves a module with its vocabulary, and a function of named strings."""
  signature = [tf.TensorSpec([None], tf.string, name) for name in names]
  module.vocab_file = tf.saved_model.Asset(str(vocab_file))
  module.serve = tf.function(function, input_signature=signature)
  signatures = {"serving_default": module.serve}
  tf.saved_model.save(module, str(output_dir), signatures=signatures)


def _inputs(segments, vocabulary) -> dict[str, tf.Tensor]:
  """Returns the inputs of a model, padded to the longest."""
  special = [vocabulary.id_of(token) for token in ("[CLS]", "[SEP]")]
  word_ids, type_ids = tf_text.combine_segments(segments, *special)
  return {
    "input_word_ids": word_ids.to_tensor(vocabulary.id_of("[PAD]")),
    "input_mask": tf.ones_like(word_ids).to_tensor(),
    "input_type_ids": type_ids.to_tensor(),
  }


def _classifier(tuned, task: glue_tasks.GlueTask, tokenizer):
  """Returns a function of one text, or of two where the task has pairs."""
  room = tuned.config.train_data.seq_length - 1 - len(task.texts)

  def classify(*texts):
    # A pair that is too long loses tokens of the longer text first.
    segments = tf_text.RoundRobinTrimmer(room).trim(
      [tokenizers.tokenize_as_prepared(tokenizer, text) for text in texts]
    )
    inputs = _inputs(segments, tokenizer.vocabulary)
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
