"""The closed formulas against models that are built; encoders of configs."""

import dataclasses
import math

import pytest
import tensorflow as tf

from official.core import exp_factory
from official.core import task_factory
from swe_tf import errors
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
import swe_tf.registry  # noqa: F401 (registers)


def build(size: sizes.Size, **fields):
  """Builds a model to be counted, not run: its weights take no memory."""
  config = exp_factory.get_exp_config("swe/bert_pretraining").task
  # Dropout has no weights, and takes a third of the time.
  no_dropout = {"dropout_rate": 0.0, "attention_dropout_rate": 0.0}
  config.model.encoder.any.override(
    {**dataclasses.asdict(size), **no_dropout, **fields}
  )
  with tf.Graph().as_default():
    return task_factory.get_task(config).build_model()


def count(variables) -> int:
  return sum(v.shape.num_elements() for v in variables)


class SizesTest(tf.test.TestCase):
  def test_parameters_of_the_model_are_those_of_the_formula(self):
    size = sizes.Size(3, 20, 5, 28)
    model = build(
      size, vocab_size=57, max_position_embeddings=11, type_vocab_size=3
    )
    self.assertEqual(
      count(model.trainable_variables),
      sizes.parameter_count(size, vocab_size=57, positions=11, types=3),
    )

  def test_sizes_are_scaled_as_section_5_3_1_says(self):
    for name, width in (("24x768", 768), ("24x1536", 1536), ("large", 1024)):
      self.assertEqual(sizes.SIZES[name], sizes.Size(24, width, 16, 4 * width))
    self.assertEqual(sizes.SIZES["base"], sizes.Size(12, 768, 12, 3072))

  def test_flops_are_those_of_the_matrix_products(self):
    # Twice the multiplications of every product in a forward pass, listed one
    # by one from the shapes; the backward pass has two for each.
    size, n, m, vocab = sizes.Size(2, 8, 2, 20), 6, 3, 11
    d, f, heads = size.hidden_size, size.intermediate_size, 2
    block = [(n, d, d)] * 4  # Queries, keys, values, output.
    block += [(n, d // heads, n), (n, n, d // heads)] * heads
    block += [(n, d, f), (n, f, d)]
    products = 2 * block + [(m, d, d), (m, d, vocab)]
    self.assertEqual(
      sizes.training_flops(
        size, 5, seq_length=n, predictions=m, vocab_size=vocab
      ),
      5 * 3 * sum(2 * math.prod(shape) for shape in products),
    )


def test_a_bert_is_found_in_its_task():
  encoder = registry.bert({"num_layers": 5})
  assert registry.require_encoder(encoder.task) == encoder
  assert encoder.is_bert and encoder.num_layers == 5
  assert (encoder.vocab_size, encoder.positions) == (30522, 512)
  changed = registry.require_encoder(encoder.overrides(num_layers=2))
  assert changed.is_bert and changed.num_layers == 2


@pytest.mark.parametrize("task", [{}, {"model": None}, {"model": {"x": 1}}])
def test_a_task_without_an_encoder(task):
  assert registry.encoder_of(task) is None
  with pytest.raises(errors.UsageError, match="no model.encoder"):
    registry.require_encoder(task)
