"""The cost model by phases, and the optimization of section 5.1.

`tests/doctor` compares the cost with real programs.
"""

import dataclasses

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from official.core import task_factory
from official.core import train_utils
from swe_tf import errors
from swe_tf.configs import cost
from swe_tf.methods import catalog
from swe_tf.modeling import sizes
from tests import tiny

_SMALL = tiny.overrides("dummy")
_DEEP = {"task": tiny.encoder(num_layers=4)}
_SIZE = sizes.Size(4, 8, 2, 16)
_STACKED = {1: 2, 2: 2, 4: 8}  # Layers, and for how many steps.


def _config(sharing=None, growth=None, **train_data):
  task = {"sharing": sharing or {}, "growth": growth or {}}
  task["train_data"] = train_data
  return tiny.config_of(_SMALL, _DEEP, {"task": task})


def _flops(size, steps):
  return sizes.training_flops(
    size, steps * 8, tiny.LENGTH, tiny.PREDICTIONS, tiny.VOCAB
  )


class CostTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    ("net2net", {"4x4": (1, (4, 4, 1, 8)), "4x8": (11, (4, 8, 2, 16))}),
    ("stacking", {f"{n}x8": (s, (n, 8, 2, 16)) for n, s in _STACKED.items()}),
  )
  def test_a_model_that_grows_is_cheaper_while_it_is_small(
    self, method, phases
  ):
    config = _config({"mode": "none"}, {"method": method})
    found = cost.estimate(config)
    self.assertEqual(list(found.phases), list(phases))
    for name, (steps, fields) in phases.items():
      phase, size = found.phases[name], sizes.Size(*fields)
      self.assertEqual(phase.steps, steps)
      self.assertEqual(phase.flops_per_step, _flops(size, 1))
      small = {"any": dataclasses.asdict(size)}
      task = config.task.replace(growth={"method": "none"})
      model = config.task.model.replace(encoder=small)
      built = task_factory.get_task(task).build_model(model)
      self.assertEqual(phase.parameters, built.count_params())
      # Layers that are not trained yet are in memory; a width that is not, no.
      is_deeper = method == "stacking"
      in_memory = found.parameters if is_deeper else phase.parameters
      self.assertEqual(phase.weight_bytes, 4 * in_memory)
    self.assertEqual(found.parameters, phase.parameters)
    self.assertEqual(found.shared_steps, 0)
    flops = [_flops(sizes.Size(*f), steps) for steps, f in phases.values()]
    self.assertEqual(found.flops, sum(flops))
    self.assertEqual(cost.training_flops(config), found.flops)
    self.assertEqual(cost.tokens(config), found.tokens)
    self.assertEqual(found.tokens, tiny.STEPS * 8 * tiny.LENGTH)

  @parameterized.parameters(
    {}, {"recipe": "one_loop", "untie_step": None}, {"mode": "none"}
  )
  def test_methods_side_by_side_do_not_depend_on_the_run(self, **sharing):
    found = cost.of_methods(_config(sharing))
    names = ["baseline", "swe", "few_loops", "one_loop", "stacking"]
    self.assertEqual(list(found), names)
    whole = _flops(_SIZE, tiny.STEPS)
    self.assertEqual((found["baseline"], found["swe"]), (whole, whole))
    mixed = _config({"mode": "reparameterize"})
    self.assertEqual(cost.estimate(mixed).flops, whole)
    one = _config({"recipe": "one_loop", "untie_step": None})
    self.assertEqual(found["one_loop"], cost.estimate(one).flops)
    layer = dataclasses.replace(_SIZE, num_layers=1)
    half = tiny.STEPS // 2
    expected = _flops(layer, half) + _flops(_SIZE, half)
    self.assertEqual(found["one_loop"], expected)
    self.assertEqual(cost.estimate(one).shared_steps, half)

  def test_what_is_left_is_in_steps_of_the_present_phase(self):
    one = _config({"recipe": "one_loop", "untie_step": None})
    half, whole = tiny.STEPS // 2, _flops(_SIZE, 1)
    ratio = whole / _flops(dataclasses.replace(_SIZE, num_layers=1), 1)
    for step, expected in (
      (0, half + half * ratio),
      (2, half - 2 + half * ratio),
      # The speed so far is that of cheap steps.
      (half, half * ratio),
      (half + 1, half - 1),
      (tiny.STEPS, 0),
    ):
      self.assertAllClose(cost.steps_left(one, step), expected)
    self.assertEqual(cost.steps_left(_config(), 5), tiny.STEPS - 5)

  def test_a_rule_that_has_no_tau_has_flops_only(self):
    config = _config({"rule": "adaptive"})
    self.assertEqual(cost.training_flops(config), _flops(_SIZE, tiny.STEPS))
    with self.assertRaisesRegex(errors.UsageError, "rule=fixed"):
      cost.estimate(config)

  def test_larger_units_have_more_gradients(self):
    stages = [{"unit_size": 2, "from_step": 3}]
    found = cost.estimate(_config({"rule": "staged", "stages": stages})).phases
    self.assertEqual(
      {name: phase.steps for name, phase in found.items()},
      {"shared": 3, "shared 2x2": 4, "unshared": 5},
    )
    block = 4 * sizes.block_parameter_count(_SIZE)
    bytes_of = {name: phase.all_reduce_bytes for name, phase in found.items()}
    self.assertEqual(bytes_of["shared 2x2"] - bytes_of["shared"], block)
    self.assertEqual(bytes_of["unshared"] - bytes_of["shared"], 3 * block)


def test_a_method_from_outside_has_a_cost(monkeypatch):
  """Half of the layers to the middle of the run."""
  half = dataclasses.replace(_SIZE, num_layers=2)

  def phases(resolved, size):
    steps = resolved.train_steps // 2
    return [
      catalog.Phase("half", steps, half, distinct_layers=1),
      catalog.Phase("whole", resolved.train_steps - steps, size, 4),
    ]

  method = catalog.Method(
    name="halves", mode="halves", build=print, phases=phases
  )
  monkeypatch.setitem(catalog._METHODS, "halves", method)
  found = cost.estimate(_config({"mode": "halves"}))
  assert found.shared_steps == tiny.STEPS // 2
  assert found.phases["half"].parameters < found.parameters
  gradients = found.phases["half"].all_reduce_bytes
  assert gradients < found.phases["half"].weight_bytes
  assert found.flops == sum(_flops(size, 6) for size in (half, _SIZE))


_PEAK = 3e-4


def config_of(**trainer):
  return tiny.config_of({"trainer": trainer})


def optimizer_of(config):
  task = task_factory.get_task(config.task)
  return train_utils.create_optimizer(task, config)


class LearningRateTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    (1_000, 20), (77_777, 1_556), (500_000, 10_000), (1_000_000, 10_000)
  )
  def test_warms_up_for_a_fiftieth_or_10k_and_ends_at_zero(self, steps, warmup):
    rate = optimizer_of(config_of(train_steps=steps)).learning_rate
    # Equal, not close: a decay from step 0 misses the peak by 2%.
    self.assertEqual(rate(warmup), np.float32(_PEAK))
    self.assertEqual(rate(steps), 0.0)
    self.assertLess(rate(warmup + 1), _PEAK)
    for middle in (warmup / 2, (steps + warmup) / 2):
      self.assertAllClose(rate(middle), _PEAK / 2, rtol=1e-5)

  @parameterized.parameters(
    # Stock, when both are set: the decay is from step 0.
    (1000, 100, {"decay_steps": 2000}, {100: 0.95, 1000: 0.5}),
    (10, 100, {}, {10: 0.1}),  # A trial may end within the warm-up.
    (1000, None, {}, {0: 1.0, 500: 0.5, 1000: 0.0}),
  )
  def test_what_is_set_stays(self, steps, warmup, decay, expected):
    warm_up = {"polynomial": {"warmup_steps": warmup}}
    if warmup is None:
      warm_up = {"type": None}
    optimization = {"warmup": warm_up, "learning_rate": {"polynomial": decay}}
    config = config_of(train_steps=steps, optimizer_config=optimization)
    rate = optimizer_of(config).learning_rate
    for step, part in expected.items():
      self.assertAllClose(rate(step), _PEAK * part)


class AdamWTest(tf.test.TestCase):
  def test_hyperparameters_are_the_papers(self):
    wanted = {"name": "AdamWeightDecay", "beta_1": 0.9, "beta_2": 0.999}
    config = optimizer_of(config_of()).get_config()
    self.assertLessEqual(
      (wanted | {"weight_decay_rate": 0.01}).items(), config.items()
    )

  def test_all_matrices_decay_and_nothing_else(self):
    config = tiny.config_of(tiny.overrides("unused"))
    model = task_factory.get_task(config.task).build_model()
    optimizer = optimizer_of(config)
    for variable in model.trainable_variables:
      kind = variable.name.split("/")[-1].split(":")[0]
      self.assertEqual(
        optimizer._do_use_weight_decay(variable.name),
        kind in ("kernel", "embeddings"),
        variable.name,
      )
