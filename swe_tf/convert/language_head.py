"""The language-model head in the checkpoint of a pre-training run."""

import tensorflow as tf

from official.modeling import tf_utils
from official.nlp.modeling import layers
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import encoder_files

_KERNEL = "masked_lm/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"


def with_head(
  loaded: encoder_files.LoadedEncoder, checkpoint: str
) -> encoder_files.LoadedEncoder:
  """Returns an encoder with its head, if the checkpoint has one.

  Args:
    loaded: The encoder.
    checkpoint: The checkpoint it was read from, or a directory with it.
  """
  path = checkpoint_files.find(checkpoint)
  shapes = checkpoint_files.reader(path).get_variable_to_shape_map()
  if _KERNEL not in shapes:
    return loaded
  # Model Garden's default.
  name = loaded.encoder.task["model"].get("mlm_activation") or "gelu"
  head = layers.MaskedLM(
    loaded.network.get_embedding_table(),
    activation=tf_utils.get_activation(name),
  )
  head(tf.zeros([1, 1, shapes[_KERNEL][0]]), tf.zeros([1, 1], tf.int32))
  what = "the language-model head of its config"
  encoder_files.read_into(path, what, masked_lm=head)
  return loaded._replace(head=encoder_files.LanguageHead(head, name))
