"""The registry: BERT in its places, and a family that comes from outside."""

import pytest
import tf_keras

from swe_tf import errors
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import plan as plan_lib


class Towers(registry.Family):
  """Residual MLPs, which keep their size at `task.tower`."""

  def find(self, task):
    return task.get("tower")

  def num_layers(self, params):
    return params["depth"]

  def size(self, params):
    return sizes.Size(params["depth"], params["width"], 1, params["width"])

  def overrides(self, task, fields):
    return {"tower": dict(fields)}

  def blocks(self, model):
    return [layer for layer in model.layers if layer.name.startswith("floor")]


def _build(depth: int, width: int) -> tf_keras.Model:
  inputs = x = tf_keras.Input([width])
  for floor in range(depth):
    x += tf_keras.layers.Dense(width, name=f"floor_{floor}")(x)
  return tf_keras.Model(inputs, tf_keras.layers.Dense(1)(x))


@pytest.fixture(name="towers")
def fixture_towers():
  family = Towers()
  registry.register(family)
  yield family
  registry.unregister(family)


def test_a_family_of_ones_own(towers):
  encoder = registry.require_encoder({"tower": {"depth": 6, "width": 3}})
  assert encoder.family is towers
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


def test_bert_is_still_found(towers):
  del towers
  encoder = registry.bert({"num_layers": 5})
  assert registry.require_encoder(encoder.task) == encoder
  assert encoder.num_layers == 5
  changed = registry.require_encoder(encoder.overrides(num_layers=2))
  assert (changed.num_layers, changed.family) == (2, encoder.family)


@pytest.mark.parametrize("task", [{}, {"model": None}, {"model": {"x": 1}}])
def test_a_task_whose_encoder_nobody_knows(task):
  assert registry.encoder_of(task) is None
  with pytest.raises(errors.UsageError, match="--plugins"):
    registry.require_encoder(task)


@pytest.mark.parametrize("kind", ["any", "bert", "bert_v2"])
def test_the_same_config_builds_and_shares(kind):
  params = {
    "vocab_size": 11,
    "hidden_size": 4,
    "num_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 6,
  }
  encoder = registry.bert(params, kind)
  assert encoder.config.type == kind
  assert encoder.config.get().num_layers == 2
  assert len(registry.blocks_of(encoder.build())) == 2


def test_other_encoders_of_model_garden_are_known_but_not_built():
  task = {"model": {"encoder": {"type": "albert", "albert": {"num_layers": 3}}}}
  encoder = registry.require_encoder(task)
  assert encoder.num_layers == 3
  assert not isinstance(encoder.family, registry.Bert)
  with pytest.raises(errors.UsageError, match="'albert', but only BERT"):
    encoder.build()
