"""An encoder as a SavedModel, with its tokenizer inside; see docs/scoring.md.

Takes ids, like TF Hub's text encoders, or raw strings (`serving_default`).
Model Garden's `export_tfhub` cannot read the checkpoint of a training run,
where `model` is more than the encoder.
"""

import pathlib

import tensorflow as tf
import tensorflow_text as tf_text
import tf_keras

from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files


def write_saved_model(
  output_dir: pathlib.Path, loaded: checkpoint_files.LoadedEncoder
) -> None:
  """Writes an encoder to a directory, with its vocabulary as an asset."""
  # Called anew: the network's own outputs have no "default".
  outputs = loaded.network(loaded.network.inputs)
  outputs["default"] = outputs["pooled_output"]
  model = tf_keras.Model(inputs=loaded.network.inputs, outputs=outputs)
  if not loaded.vocab_file:
    tf.saved_model.save(model, str(output_dir))
    return
  model.vocab_file = tf.saved_model.Asset(str(loaded.vocab_file))
  vocabulary = vocab_lib.Vocabulary.load(loaded.vocab_file)
  tokenizer = tokenizers.make(vocabulary, vocabulary.is_lower_case)
  length = loaded.network.get_config()["max_sequence_length"]
  special = [vocabulary.id_of(token) for token in ("[CLS]", "[SEP]")]

  @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
  def serve(text):
    # Longer texts are cut: there are no more positions.
    ids = tokenizer.tokenize(text)[:, : length - 2]
    ids, type_ids = tf_text.combine_segments([ids], *special)
    # Padded to the longest text.
    inputs = {
      "input_word_ids": ids.to_tensor(vocabulary.id_of("[PAD]")),
      "input_mask": tf.ones_like(ids).to_tensor(),
      "input_type_ids": type_ids.to_tensor(),
    }
    outputs = model(inputs)
    return {
      "input_word_ids": inputs["input_word_ids"],
      "input_mask": inputs["input_mask"],
      "sequence_output": outputs["sequence_output"],
      "pooled_output": outputs["pooled_output"],
    }

  signatures = {"serving_default": serve}
  tf.saved_model.save(model, str(output_dir), signatures=signatures)
