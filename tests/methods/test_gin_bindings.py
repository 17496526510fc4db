"""Methods in gin: what a run leaves in its config, and stock tasks."""

import pathlib

import gin
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.core import task_factory
from official.core import train_utils
from official.modeling import optimization
from swe_tf import errors
from swe_tf.methods import gin_bindings
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.training import trainer as trainer_lib
from tests import tiny

_FOLDER = pathlib.Path(__file__).parents[2] / "gin"
_EMA = {"trainer": {"optimizer_config": {"ema": {"average_decay": 0.9}}}}


@gin.configurable
class UntieByMoon(schedule.UntieRule):
  def __init__(self, phase="full"):
    self.phase = phase

  def next_decision(self, step):
    return step + 3

  def should_untie(self, step, gradient_cosine):
    return step >= 3


@pytest.fixture(autouse=True)
def _without_bindings():
  yield
  gin.clear_config()


@pytest.mark.parametrize(
  "bindings, left",
  [
    ([], {"rule": "fixed", "untie_step": tiny.TAU, "bindings": []}),
    # No trainer asks for this one.
    (["UntieAtStep.untie_step = 2"], {"untie_step": tiny.TAU}),
    (
      [
        "SharedWeightsTrainer.untie_rule = @UntieAtStep()",
        "UntieAtStep.untie_step = 9",
      ],
      {"rule": "fixed", "untie_step": 9},
    ),
    (
      [
        "SharedWeightsTrainer.untie_rule = @UntieByMoon()",
        "UntieByMoon.phase = 'new'",
      ],
      {"rule": "UntieByMoon", "bindings": ["UntieByMoon.phase = 'new'"]},
    ),
    (
      ["sharing.unit_size = 2", "sharing.mode = 'equal_init'"],
      {"unit_size": 2, "mode": "equal_init"},
    ),
  ],
)
def test_what_is_bound_is_in_the_config(bindings, left):
  gin.parse_config(bindings)
  sharing = tiny.config_of(tiny.overrides("unused")).task.sharing.as_dict()
  assert {key: sharing[key] for key in left} == left


# What each file of gin/ leaves in params.yaml, for a model of 4 layers.
_GIN = {
  "units_2 tau_20": {"unit_size": 2, "untie_fraction": 0.2},
  "units_4": {"unit_size": 4},
  "albert": {"untie_fraction": 1.0},
  "staged": {"rule": "staged"},
  "adaptive units_2": {"rule": "adaptive", "unit_size": 2},
  "reparameterize": {"mode": "reparameterize"},
  "baseline": {"mode": "none"},
  "net2net": {"mode": "none", "growth": "net2net"},
  "stacking": {"mode": "none", "growth": "stacking"},
  "few_loops": {"recipe": "few_loops", "untie_fraction": 0.3},
  "one_loop": {"recipe": "one_loop", "untie_fraction": 0.5},
}


@pytest.mark.parametrize("names", _GIN)
def test_gin_files_choose_the_method(names):
  for name in names.split():
    gin.parse_config_file(str(_FOLDER / f"{name}.gin"))
  changes = {
    "task": tiny.encoder(num_layers=4) | {"sharing": {"untie_step": None}},
    "trainer": {"train_steps": 20},  # 5% of it is a step, for `staged`.
  }
  task = tiny.config_of(tiny.overrides("unused"), changes).task
  left = task.sharing.as_dict() | {"growth": task.growth.method}
  assert {key: left[key] for key in _GIN[names]} == _GIN[names]


def test_every_gin_file_is_read_by_a_test():
  known = {name for names in _GIN for name in names.split()}
  files = {path.stem for path in _FOLDER.glob("*.gin")}
  # Model Garden's ViT is run by tests/test_examples.py, `stock` by
  # tests/modeling/test_encoder_types.py.
  assert files - {"swe", "stock", "custom_rule", "vit"} == known


@pytest.fixture(name="config")
def fixture_config(tmp_path):
  gin.parse_config(f"sharing.untie_step = {tiny.TAU}")
  return tiny.config_of(tiny.written(tmp_path), _EMA)


def _trainer(config, weights=None, **kwargs):
  task = task_factory.get_task(config.task)
  model = task.build_model()
  model(model.inputs)
  if weights:
    model.set_weights(weights)
  return trainer_lib.SharedWeightsTrainer(
    config,
    task,
    model=model,
    optimizer=train_utils.create_optimizer(task, config),
    evaluate=False,
    **kwargs,
  )


def test_a_stock_task_is_trained_as_ours(config, capsys):
  ours = _trainer(config)
  shared = f"share weights as 1x2 until step {tiny.TAU} of {tiny.STEPS}"
  assert shared in capsys.readouterr().out
  dataset = ours.task.build_inputs(config.task.train_data)
  _trainer(tiny.stock_of(config), train_dataset=dataset)
  assert "nothing is shared: this task has no" in capsys.readouterr().out
  stock = _trainer(
    tiny.stock_of(config),
    ours.model.get_weights(),
    method=gin_bindings.share_blocks,
    train_dataset=dataset,
  )
  assert shared in capsys.readouterr().out
  assert not hasattr(stock.config.task, "sharing")
  assert isinstance(stock.optimizer, optimization.ExponentialMovingAverage)
  for trainer in (ours, stock):
    trainer.initialize()
    trainer.train(tf.constant(tiny.TAU))
  sharing = stock.optimizer._optimizer  # pylint: disable=protected-access
  assert isinstance(sharing, optimizer_lib.SharedWeightsOptimizer)
  for stem, *branches in sharing.plan.whole_ties:
    for branch in branches:
      np.testing.assert_array_equal(stem.numpy(), branch.numpy())
  for trainer in (ours, stock):
    trainer.train(tf.constant(tiny.STEPS - tiny.TAU))
  assert sharing.untied_at == tiny.TAU
  found, expected = map(tiny.final_state, (stock, ours))
  tiny.assert_close_state(found, expected, rtol=1e-7, atol=1e-6)


def test_a_task_with_a_method_of_its_own_keeps_it(config):
  with pytest.raises(errors.UsageError, match="has task.sharing; unbind it"):
    _trainer(config, method=gin_bindings.share_blocks)


@pytest.mark.parametrize(
  "binding, message",
  [
    ("sharing.mode = 'share'", "mode"),
    ("sharing.recipe = 'few_loops'", "recipe=few_loops has 4 units"),
    ("growth.method = 'stacking'", "shares no weights"),
    ("sharing.untie_fracton = 0.1", "did you mean untie_fraction"),
  ],
)
def test_what_cannot_be_trained(config, binding, message):
  with gin.unlock_config():
    gin.parse_config(binding)
  with pytest.raises(errors.UsageError, match=message):
    _trainer(tiny.stock_of(config), method=gin_bindings.share_blocks)


class _Stack(tf_keras.layers.Layer):
  """Has blocks inside, as Model Garden's ViT does."""

  def __init__(self, names):
    super().__init__(name="stack")
    self.blocks = [tf_keras.layers.Dense(2, name=name) for name in names]

  def call(self, x):
    for block in self.blocks:
      x = block(x)
    return x


def _model(names):
  inputs = tf_keras.Input([2])
  return tf_keras.Model(inputs, _Stack(names)(inputs))


def test_layers_by_name_are_in_the_order_of_the_stack():
  names = ["block", *(f"block_{i}" for i in range(1, 12))]
  model = _model([*names, "blocks"])
  found = gin_bindings.layers_by_name(model, "block(_[0-9]+)?")
  assert [layer.name for layer in found] == names
  for names, pattern, message in (
    (["block", "block_1"], "layer.*", "more than once are block_1"),
    (["block", "block"], "block", "two layers with one name"),
    (["block"], "(", "not a regular expression"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      gin_bindings.layers_by_name(_model(names), pattern)
