"""Few loops against the slow way.

The slow way is Algorithm 1, run literally on a BERT with as many layers as are
applied, then a deep BERT made of copies of its unit, weights and slots.
"""

from absl.testing import parameterized
import pytest
import tensorflow as tf

from official.core import train_utils
from swe_tf import errors
from swe_tf.sharing import slots
from tests import tiny
from tests.sharing import toy
from tests.training import runs

_LAYERS, _TAU, _STEPS = 4, 4, 7


def _override(*loops, unit_size=1, sharing=None, **trainer):
  fields = {"untie_step": _TAU, "unit_size": unit_size, "loops": list(loops)}
  # A small epsilon blows up the rounding of gradients that are almost 0.
  optimizer = {"optimizer": {"adamw": {"epsilon": 1e-3}}}
  steps = {"train_steps": _STEPS, "optimizer_config": optimizer}
  return {
    "task": tiny.encoder(num_layers=_LAYERS)
    | {"sharing": fields | (sharing or {})},
    "trainer": steps | trainer,
  }


def _at_depth(override, num_layers):
  """Returns the override for an ordinary BERT of another depth."""
  sharing = {"mode": "none", "unit_size": 1, "loops": []}
  task = tiny.encoder(num_layers=num_layers) | {"sharing": sharing}
  return override | {"task": task}


class LoopsTest(runs.RunsTestCase):
  def _runner(self, override, directory=None, strategy=None):
    config = tiny.config_of(self.base, override)
    directory = directory or self.create_tempdir().full_path
    return tiny.make_runner(config, directory, strategy=strategy)

  def _slow_way(self, override, start, depths):
    """Trains as the module's docstring says; returns the final state.

    `start` has the weights before the first update, `depths` pairs of a step
    and of the layers that are applied before it.
    """
    sharing = override["task"]["sharing"]
    whole = tiny.config_of(self.base, _at_depth(override, _LAYERS))
    trainer = self._runner(_at_depth(override, _LAYERS)).trainer
    batches = iter(trainer.task.build_inputs(whole.task.train_data))
    model, optimizer = trainer.model, trainer.optimizer
    model.set_weights(start)
    step = 0
    for until, depth in (*depths, (_STEPS, _LAYERS)):
      config = tiny.config_of(self.base, _at_depth(override, depth))
      task = type(trainer.task)(config.task)
      fresh = task.build_model()
      its_optimizer = train_utils.create_optimizer(task, config)
      self._copy(model, optimizer, fresh, its_optimizer, sharing["unit_size"])
      model, optimizer = fresh, its_optimizer
      while step < until:
        unit = sharing["unit_size"] if step < _TAU else None
        self._algorithm_1(task, model, optimizer, next(batches), unit)
        step += 1
    trainer._model, trainer._optimizer = model, optimizer  # pylint: disable=protected-access
    return tiny.final_state(trainer)

  def _copy(self, source, source_optimizer, target, optimizer, unit):
    """Makes `target` of the first unit of `source`, and all the rest of it."""
    blocks = source.encoder_network.transformer_layers
    targets = target.encoder_network.transformer_layers
    pairs = [
      pair
      for i, block in enumerate(targets)
      for pair in zip(blocks[i % unit].variables, block.variables)
    ]
    ours = {id(v) for _, v in pairs}
    tied = {id(v) for block in blocks for v in block.variables}
    pairs += zip(
      (v for v in source.trainable_variables if id(v) not in tied),
      (v for v in target.trainable_variables if id(v) not in ours),
    )
    optimizer.iterations.assign(source_optimizer.iterations)
    for old, new in pairs:
      new.assign(old)
      if slots.has_slots(source_optimizer, old):
        slots.create_slots(optimizer, [new])
        made = slots.slots_of(optimizer, new)
        for name, slot in slots.slots_of(source_optimizer, old).items():
          made[name].assign(slot)

  def _algorithm_1(self, task, model, optimizer, batch, unit):
    """Makes one update, shared in units of this size if there is one."""
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
      outputs = model(batch, training=True)
      loss = task.build_losses(batch, outputs, task.build_metrics())
    grads = dict(zip(map(id, variables), tape.gradient(loss, variables)))
    blocks = model.encoder_network.transformer_layers
    for i in range(unit or 0):
      columns = [block.trainable_variables for block in blocks[i::unit]]
      for tie in zip(*columns):
        mean = tf.add_n([grads[id(v)] for v in tie]) / len(tie)
        grads |= {id(v): mean for v in tie}
    optimizer.apply_gradients([(grads[id(v)], v) for v in variables])

  @parameterized.named_parameters(
    (
      "more_and_more",
      [dict(loops=1, until_step=1), dict(loops=2, until_step=3)],
      1,
      [(1, 1), (3, 2), (_TAU, 4)],
    ),
    ("units_of_two", [dict(loops=1)], 2, [(_TAU, 2)]),
  )
  def test_equals_the_slow_way(self, loops, unit_size, depths):
    override = _override(*loops, unit_size=unit_size)
    runner = self._runner(override)
    start = runner.trainer._phases.optimizer.plan  # pylint: disable=protected-access
    for stem, *branches in start.whole_ties:
      for branch in branches:
        self.assertAllEqual(stem, branch)
    weights = super(type(runner.trainer), runner.trainer).model.get_weights()
    runner.controller.train(_STEPS)
    ours = tiny.final_state(runner.trainer)
    theirs = self._slow_way(override, weights, depths)
    tiny.assert_close_state(ours, theirs, rtol=1e-5, atol=1e-6)

  def test_units_of_a_quarter_applied_once_are_stacking(self):
    """The recipe: what stacking does when it grows at once."""
    part, quarter = _TAU / 10, _LAYERS // 4
    recipe = dict(untie_step=None, untie_fraction=part, unit_size=quarter)
    ours = _override(dict(loops=1), sharing=recipe, train_steps=10)
    theirs = _override(sharing={"mode": "none"}, train_steps=10)
    theirs["task"]["growth"] = {"method": "stacking", "fractions": [part, part]}
    states = []
    for override in (ours, theirs):
      runner = self._runner(override)
      runner.controller.train(10)
      states.append(tiny.final_state(runner.trainer))
    tiny.assert_close_state(*states, 1e-6, 1e-7)
    named = _override(sharing={"recipe": "few_loops", "untie_step": None})
    fields = tiny.config_of(self.base, named).task.sharing
    self.assertEqual((fields.unit_size, fields.untie_fraction), (1, 0.3))

  def test_a_step_has_fewer_layers_and_says_so(self):
    runner = self._runner(_override(dict(loops=1, until_step=2)))
    trainer = runner.trainer
    depths = []
    for stop in (1, 3, 5):
      model = trainer.model
      depths.append(len(model.encoder_network.transformer_layers))
      logs = trainer.train(tf.constant(2))
      self.assertEqual(int(trainer.global_step), stop + 1)
    self.assertEqual(depths, [1, 4, 4])
    self.assertEqual(logs["sharing/loops"], _LAYERS)
    self.assertEqual(trainer._phases.eval_logs(), {"sharing/loops": _LAYERS})  # pylint: disable=protected-access
    self.assertEqual(logs["sharing/phase"], 1.0)

  @pytest.mark.slow
  def test_on_two_replicas(self):
    override = _override(dict(loops=2))
    override["task"]["scale_loss"] = True
    clip = {"adamw": {"gradient_clip_norm": 0.0, "epsilon": 1e-3}}
    override["trainer"]["optimizer_config"] = {"optimizer": clip}
    states = []
    for replicas in (1, 2):
      strategy = toy.strategy_of(replicas)
      runner = self._runner(override, strategy=strategy)
      with strategy.scope():
        runner.controller.train(_STEPS)
      states.append(tiny.final_state(runner.trainer))
    tiny.assert_close_state(*states, 1e-4, 1e-5)

  @parameterized.parameters(
    ([dict(loops=5)], {}, "5 after 0"),
    ([dict(until_step=2)], {}, "without a number of loops"),
    ([dict(loops=2), dict(loops=2)], {}, "2 after 2"),
    ([dict(loops=2)], {"rule": "adaptive"}, "loops need 'fixed'"),
    ([dict(loops=2)], {"mode": "none"}, "'baseline', which ties no layers"),
  )
  def test_is_refused(self, loops, sharing, message):
    override = _override(*loops)
    override["task"]["sharing"] |= sharing
    with self.assertRaisesRegex(errors.UsageError, message):
      tiny.config_of(self.base, override)
