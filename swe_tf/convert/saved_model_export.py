"""An encoder as a SavedModel that TF Hub's text API knows how to call.

    encoder = tf.saved_model.load(DIR)
    outputs = encoder(
        dict(input_word_ids=..., input_mask=..., input_type_ids=...))
    outputs["sequence_output"], outputs["pooled_output"]  # also "default"

Model Garden's `export_tfhub` writes the same, but cannot read the checkpoint
of a training run, where `model` is more than the encoder.
"""

import pathlib

import tensorflow as tf
import tf_keras

from swe_tf.modeling import encoder_files


def write_saved_model(
  output_dir: pathlib.Path, loaded: encoder_files.LoadedEncoder
) -> None:
  """Writes an encoder into a directory, its vocabulary as an asset."""
  outputs = loaded.network(loaded.network.inputs)
  outputs["default"] = outputs["pooled_output"]
  model = tf_keras.Model(inputs=loaded.network.inputs, outputs=outputs)
  if loaded.vocab_file:
    model.vocab_file = tf.saved_model.Asset(str(loaded.vocab_file))
  tf.saved_model.save(model, str(output_dir))
