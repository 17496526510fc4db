"""Growth under replicas and reduced precision: resumed equals straight.

Two workers are in `tests/end_to_end/test_multi_worker.py`.
"""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.modeling import performance
from tests import tiny
from tests.sharing import toy

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
# Each takes most of a minute.
_IN_EVERY_RUN = ("net2net", "float16_two_replicas")


def _config(records, method, precision):
  num_layers, fractions, _ = _METHODS[method]
  return tiny.config_of(
    tiny.overrides(records),
    {
      "task": {
        "model": {"encoder": {"any": {"num_layers": num_layers}}},
        "sharing": {"mode": "none", "untie_step": None},
        "growth": {"method": method, "fractions": fractions},
      },
      "trainer": {
        "train_steps": _STEPS,
        "steps_per_loop": 2,
        "summary_interval": 2,
      },
      "runtime": {
        "mixed_precision_dtype": precision,
        # Dynamic: the scale and its counter are state, too.
        "loss_scale": "dynamic" if precision == "float16" else None,
      },
    },
  )


class GrowthRunsTest(tf.test.TestCase, parameterized.TestCase):
  def tearDown(self):
    tf_keras.mixed_precision.set_global_policy("float32")
    super().tearDown()

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
    records = tiny.write_records(self.create_tempdir().full_path)
    config = _config(records, method, precision)
    performance.set_mixed_precision_policy(precision)
    strategy = toy.strategy_of(replicas)
    straight = self._train(config, [_STEPS], strategy)
    _, _, switches = _METHODS[method]
    resumed = self._train(config, [*switches, _STEPS], strategy)
    for trainer in (straight, resumed):
      self.assertEqual(trainer._phases.stage, len(switches))  # pylint: disable=protected-access
    ours, theirs = map(tiny.final_state, (resumed, straight))
    self.assertEqual(ours.keys(), theirs.keys())
    differ = [k for k in ours if not np.array_equal(ours[k], theirs[k])]
    self.assertEmpty(differ, f"{len(differ)} of {len(ours)} tensors differ")
    self.assertTrue(all(np.all(np.isfinite(value)) for value in ours.values()))

  def test_resumed_equals_straight(self):
    self._check(*_IN_EVERY_RUN)

  @parameterized.parameters(
    (method, setup)
    for method in _METHODS
    for setup in _SETUPS
    if (method, setup) != _IN_EVERY_RUN
  )
  @pytest.mark.slow
  def test_resumed_equals_straight_too(self, method, setup):
    self._check(method, setup)


if __name__ == "__main__":
  tf.test.main()
