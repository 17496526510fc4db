"""The repeated blocks of a model: the plan that ties them, shallow views."""

from collections.abc import Callable, Sequence
from typing import Any

import gin
import tf_keras

from official.nlp.modeling import models
from swe_tf import errors
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry
from swe_tf.sharing import plan as plan_lib
from swe_tf.training import resume


@gin.configurable
def find_repeated_blocks(
  model: tf_keras.Model, finder: Callable[..., Any] | None = None
) -> Sequence[tf_keras.layers.Layer]:
  """Returns the repeated blocks of a model, first to last; maybe none.

  For an encoder that keeps them elsewhere, bind a function of the model in gin:
  `find_repeated_blocks.finder = @my_finder`.
  """
  return list(finder(model) if finder else registry.blocks_of(model))


def plan_of(
  model: tf_keras.Model, config: config_lib.SharingConfig
) -> plan_lib.SharingPlan:
  """Returns the plan of a model; raises `UsageError` if nothing repeats."""
  blocks = find_repeated_blocks(model)
  if not blocks:
    encoder = getattr(model, "encoder_network", model)
    raise errors.UsageError(
      f"task.sharing.mode is {config.mode!r}, but {type(encoder).__name__} has "
      "no `transformer_layers` to share. Bind `find_repeated_blocks.finder` in "
      "gin to a function that returns them, or set task.sharing.mode=none."
    )
  return plan_lib.SharingPlan.from_layers(blocks, config.unit_size)


def encoder_builder(task) -> Callable[[int], Any]:
  """Returns a function that builds the task's encoder at a given depth."""
  model = task.task_config.model
  encoder = registry.require_encoder({"model": model.as_dict()})

  def build(num_layers: int):
    # Layers cannot be exchanged in a "bert", a Keras graph; a "bert_v2" is
    # made of the same ones.
    kind = "bert_v2" if encoder.kind == "bert" else encoder.kind
    fields = dict(encoder.params) | {"num_layers": num_layers}
    shallow = {"encoder": {"type": kind, kind: fields}}
    with resume.dropout_with_state():
      return task._build_encoder(model.replace(**shallow).encoder)  # pylint: disable=protected-access

  return build


def view_of(
  model: tf_keras.Model,
  blocks: Sequence[int],
  build_encoder: Callable[[int], Any],
) -> tf_keras.Model:
  """Returns a view of a built `BertPretrainerV2` with some of its blocks.

  The encoder that is built gets the layers of the model in place of its own;
  blocks that are left out get neither gradients nor weight decay nor slots.
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
