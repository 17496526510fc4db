"""Tiny models of Model Garden's masked LM, and random batches for them."""

import numpy as np
import tensorflow as tf
import tf_keras

from official.nlp.tasks import masked_lm
from swe_tf.doctor.tpu import step_kinds
from tests import tiny

_HEAD = {"inner_dim": 6, "num_classes": 2, "name": "next_sentence"}


def config_of(*overrides, head=True, **encoder):
  """Returns a tiny experiment, with a classification head too."""
  task = {"model": {"encoder": {"any": encoder}}}
  task["model"]["cls_heads"] = [_HEAD] if head else []
  return tiny.config_of(
    tiny.overrides("no_records"),
    {"task": {**task, "sharing": {"mode": "none"}}},
    *overrides,
  )


def build_model(config, params=None):
  model = masked_lm.MaskedLMTask(config.task).build_model(params)
  model(model.inputs)
  return model


def randomize(model, seed=0):
  """Makes all weights random: a fresh bias or layer norm would hide faults."""
  rng = np.random.default_rng(seed)
  for v in model.variables:
    v.assign(rng.normal(0.3 if "gamma" in v.name else 0.0, 0.3, v.shape))


def batch(config, seed=0):
  tf_keras.utils.set_random_seed(seed)
  return step_kinds.make_inputs(config)


def gradients(model, inputs):
  """Returns the gradients of a loss that reaches both heads, dense."""
  with tf.GradientTape() as tape:
    outputs = model(inputs)
    loss = tf.reduce_mean(
      tf.nn.sparse_softmax_cross_entropy_with_logits(
        inputs["masked_lm_ids"], outputs["mlm_logits"]
      )
    )
    if "next_sentence" in outputs:
      loss -= tf.reduce_mean(tf.nn.log_softmax(outputs["next_sentence"])[:, 0])
  return [
    None if g is None else tf.convert_to_tensor(g)
    for g in tape.gradient(loss, model.trainable_variables)
  ]
