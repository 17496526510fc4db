"""The closed formulas against models that are built; families of encoders."""

import dataclasses
import math

from absl.testing import parameterized
import pytest
import tensorflow as tf
import tf_keras

from official.core import exp_factory
from official.core import task_factory
from swe_tf import errors
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
import swe_tf.registry  # noqa: F401 (registers)
from swe_tf.sharing import plan as plan_lib


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


class SizesTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(*sizes.SIZES)
  def test_parameters_of_the_model_are_those_of_the_formula(self, name):
    size = sizes.SIZES[name]
    model = build(size)
    variables = model.trainable_variables
    self.assertEqual(count(variables), sizes.parameter_count(size))
    norms = [v for v in variables if "final_layer_norm" in v.name]
    self.assertEqual(count(norms), 2 * size.hidden_size)

  def test_formula_holds_for_any_size(self):
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


class Towers(registry.Encoder):
  """Residual MLPs, which keep their size at `task.tower`."""

  @staticmethod
  def find(task):
    return task.get("tower")

  @property
  def num_layers(self):
    return self.params["depth"]

  @property
  def size(self):
    width = self.params["width"]
    return sizes.Size(self.params["depth"], width, 1, width)

  def overrides(self, **fields):
    return {"tower": fields}

  @staticmethod
  def blocks(model):
    return [layer for layer in model.layers if layer.name.startswith("floor")]


def _build(depth: int, width: int) -> tf_keras.Model:
  inputs = x = tf_keras.Input([width])
  for floor in range(depth):
    x += tf_keras.layers.Dense(width, name=f"floor_{floor}")(x)
  return tf_keras.Model(inputs, tf_keras.layers.Dense(1)(x))


@pytest.fixture(name="towers")
def fixture_towers():
  registry.register(Towers)
  yield
  registry.unregister(Towers)


@pytest.mark.usefixtures("towers")
def test_a_family_of_ones_own():
  encoder = registry.require_encoder({"tower": {"depth": 6, "width": 3}})
  assert isinstance(encoder, Towers)
  assert encoder.num_layers == 6
  assert encoder.size == sizes.Size(6, 3, 1, 3)
  assert encoder.vocab_size is None and encoder.positions is None
  assert encoder.overrides(depth=2) == {"tower": {"depth": 2}}
  with pytest.raises(errors.UsageError, match="Towers"):
    encoder.build()

  blocks = registry.blocks_of(_build(6, 3))
  assert [block.name for block in blocks] == [f"floor_{i}" for i in range(6)]
  plan = plan_lib.SharingPlan.from_layers(blocks, unit_size=2)
  assert str(plan) == "2x3"
  assert len(plan.ties) == 4  # A kernel and a bias of each of two layers.


@pytest.mark.usefixtures("towers")
def test_bert_is_still_found():
  encoder = registry.bert({"num_layers": 5})
  assert registry.require_encoder(encoder.task) == encoder
  assert encoder.num_layers == 5
  changed = registry.require_encoder(encoder.overrides(num_layers=2))
  assert (changed.num_layers, type(changed)) == (2, type(encoder))


@pytest.mark.parametrize("task", [{}, {"model": None}, {"model": {"x": 1}}])
def test_a_task_whose_encoder_nobody_knows(task):
  assert registry.encoder_of(task) is None
  with pytest.raises(errors.UsageError, match="plug-in"):
    registry.require_encoder(task)


@pytest.mark.parametrize("kind", ["any", "bert", "bert_v2"])
def test_the_same_config_builds_and_shares(kind):
  size = dataclasses.asdict(sizes.Size(2, 4, 2, 6))
  encoder = registry.bert({"vocab_size": 11, **size}, kind)
  assert encoder.config.type == kind
  assert encoder.config.get().num_layers == 2
  assert len(registry.blocks_of(encoder.build())) == 2


def test_other_encoders_of_model_garden_are_known_but_not_built():
  task = {"model": {"encoder": {"type": "albert", "albert": {"num_layers": 3}}}}
  encoder = registry.require_encoder(task)
  assert encoder.num_layers == 3
  assert not encoder.is_bert
  with pytest.raises(errors.UsageError, match="'albert', but only BERT"):
    encoder.build()
