"""Growth under replicas and reduced precision: resumed equals straight.

Two workers are in `tests/end_to_end/test_multi_worker.py`.
"""

from absl.testing import parameterized
import numpy as np
import pytest

from official.modeling import performance
from tests import tiny
from tests.sharing import toy
from tests.training import runs

_STEPS = 6
# The number of layers, the fractions, and the steps after which it grows.
_METHODS = {"net2net": (1, [0.5], (3,)), "stacking": (4, [0.34, 0.67], (2, 4))}
# The precision and the number of replicas.
_SETUPS = {
  "two_replicas": ("float32", 2),
  "bfloat16": ("bfloat16", 1),
  "float16": ("float16", 1),
  "float16_two_replicas": ("float16", 2),
}


class GrowthRunsTest(runs.RunsTestCase):
  def _train(self, config, stops, strategy):
    """Trains to each stop in a new runner; returns the last one."""
    directory = self.create_tempdir().full_path
    for stop in stops:
      runner = tiny.make_runner(config, directory, strategy=strategy)
      with strategy.scope():
        runner.controller.train(stop)
    return runner.trainer

  def _check(self, method, setup):
    precision, replicas = _SETUPS[setup]
    num_layers, fractions, switches = _METHODS[method]
    task = {
      "model": {"encoder": {"any": {"num_layers": num_layers}}},
      "sharing": {"mode": "none", "untie_step": None},
      "growth": {"method": method, "fractions": fractions},
    }
    runtime = {
      "mixed_precision_dtype": precision,
      # Dynamic: the scale and its counter are state, too.
      "loss_scale": "dynamic" if precision == "float16" else None,
    }
    steps = dict(train_steps=_STEPS, steps_per_loop=2, summary_interval=2)
    config = tiny.config_of(
      self.base, {"task": task, "trainer": steps, "runtime": runtime}
    )
    performance.set_mixed_precision_policy(precision)
    strategy = toy.strategy_of(replicas)
    straight = self._train(config, [_STEPS], strategy)
    resumed = self._train(config, [*switches, _STEPS], strategy)
    for trainer in (straight, resumed):
      self.assertEqual(trainer._phases.stage, len(switches))  # pylint: disable=protected-access
    self.assert_same_state(resumed, straight)
    state = tiny.final_state(resumed)
    self.assertTrue(all(np.all(np.isfinite(v)) for v in state.values()))

  def test_resumed_equals_straight(self):
    # Each takes most of a minute.
    self._check("net2net", "float16_two_replicas")

  @parameterized.product(method=list(_METHODS), setup=list(_SETUPS))
  @pytest.mark.slow
  def test_resumed_equals_straight_too(self, method, setup):
    self._check(method, setup)
