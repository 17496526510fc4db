"""The registry: BERT in its places, and a family that comes from outside."""

import dataclasses

import pytest
import tf_keras

from swe_tf import errors
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import plan as plan_lib


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


def test_a_family_of_ones_own(towers):
  del towers
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


def test_bert_is_still_found(towers):
  del towers
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
