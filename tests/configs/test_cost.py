"""The cost model by phases; `tests/doctor` compares it with real programs."""

import dataclasses

from absl.testing import parameterized
import tensorflow as tf

from official.core import task_factory
from swe_tf import errors
from swe_tf.configs import cost
from swe_tf.methods import catalog
from swe_tf.modeling import sizes
from tests import tiny

_SMALL = tiny.overrides("dummy")
_DEEP = {"task": {"model": {"encoder": {"any": {"num_layers": 4}}}}}
_SIZE = sizes.Size(4, 8, 2, 16)


def _config(sharing=None, growth=None, **train_data):
  task = {
    "sharing": sharing or {},
    "growth": growth or {},
    "train_data": train_data,
  }
  return tiny.config_of(_SMALL, _DEEP, {"task": task})


def _flops(size, steps):
  return sizes.training_flops(
    size, steps * 8, tiny.LENGTH, tiny.PREDICTIONS, tiny.VOCAB
  )


class CostTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    ("net2net", {"4x4": (1, (4, 4, 1, 8)), "4x8": (11, (4, 8, 2, 16))}),
    (
      "stacking",
      {
        "1x8": (2, (1, 8, 2, 16)),
        "2x8": (2, (2, 8, 2, 16)),
        "4x8": (8, (4, 8, 2, 16)),
      },
    ),
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
      model = config.task.model.replace(
        encoder={"any": dataclasses.asdict(size)}
      )
      built = task_factory.get_task(
        config.task.replace(growth={"method": "none"})
      ).build_model(model)
      self.assertEqual(phase.parameters, built.count_params())
      # Layers that are not trained yet are in memory; a width that is not, no.
      is_deeper = method == "stacking"
      in_memory = found.parameters if is_deeper else phase.parameters
      self.assertEqual(phase.weight_bytes, 4 * in_memory)
    self.assertEqual(found.parameters, phase.parameters)
    self.assertEqual(found.shared_steps, 0)
    self.assertEqual(
      found.flops,
      sum(_flops(sizes.Size(*f), steps) for steps, f in phases.values()),
    )
    self.assertEqual(cost.training_flops(config), found.flops)
    self.assertEqual(cost.tokens(config), found.tokens)
    self.assertEqual(found.tokens, tiny.STEPS * 8 * tiny.LENGTH)

  @parameterized.parameters("swe", "none", "reparameterize")
  def test_sharing_costs_no_flops(self, mode):
    config = _config({"mode": mode})
    self.assertEqual(cost.training_flops(config), _flops(_SIZE, tiny.STEPS))
    self.assertEqual(cost.estimate(config).flops, cost.training_flops(config))

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

  def test_predictions_are_those_of_the_data(self):
    text = tiny.config_of(experiment="swe/bert_pretraining_text")
    data = text.task.train_data.replace(seq_length=17, masking_rate=0.15)
    data.max_predictions_per_seq = None
    self.assertEqual(cost.predictions_per_sequence(data), 3)  # Of 2.55.
    data.max_predictions_per_seq = 7
    self.assertEqual(cost.predictions_per_sequence(data), 7)


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
