"""Shallow views of a BERT: some of its blocks, and everything else as it is.

There is one model. A view computes with some of its blocks; the others get
neither gradients nor weight decay nor slots while it is trained.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tf_keras

from official.nlp.modeling import models
from swe_tf.modeling import registry

BuildEncoder = Callable[[int], Any]


def encoder_builder(task) -> BuildEncoder:
  """Returns a function that builds the task's encoder at a given depth."""
  model = task.task_config.model
  encoder = registry.require_encoder({"model": model.as_dict()})

  def build(num_layers: int):
    shallow = encoder.overrides(num_layers=num_layers)["model"]
    return task._build_encoder(model.replace(**shallow).encoder)  # pylint: disable=protected-access

  return build


def of_blocks(
  model: tf_keras.Model, blocks: Sequence[int], build_encoder: BuildEncoder
) -> tf_keras.Model:
  """Returns a view of a built `BertPretrainerV2` with some of its blocks.

  The encoder that is built gets the layers of the model in place of its own.
  """
  encoder, shallow = model.encoder_network, build_encoder(len(blocks))
  for name, value in list(vars(encoder).items()):
    if isinstance(value, tf_keras.layers.Layer):
      setattr(shallow, name, value)
    elif value is encoder.transformer_layers:
      setattr(shallow, name, [value[i] for i in blocks])
  return models.BertPretrainerV2(
    encoder_network=shallow,
    customized_masked_lm=model.masked_lm,
    classification_heads=model.classification_heads,
  )
