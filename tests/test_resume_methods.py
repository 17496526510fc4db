"""Every method: trained straight, and killed and resumed, gives the same.

Weights, slots and decisions, bit for bit, with stops at each switch, and in the
slow tests before and after it too. Resuming under other optimizers, replicas
and wrappers is tested in `tests/training/test_trainer.py`.
"""

from absl.testing import parameterized
import pytest

from official.modeling import performance
from tests import tiny
from tests.sharing import toy
from tests.training import runs

_STEPS = 10


def _task(num_layers, **config):
  model = {"encoder": {"any": {"num_layers": num_layers}}}
  return {
    "task": {"model": model, **config},
    "trainer": {"train_steps": _STEPS},
  }


def _sharing(num_layers=2, **config):
  return _task(num_layers, sharing=config)


def _by_correlation(rule, rho):
  return _sharing(4, rule=rule, check_interval=2, rho=rho, patience=2)


def _growing(num_layers, method, *fractions):
  return _task(
    num_layers,
    sharing={"mode": "none"},
    growth={"method": method, "fractions": list(fractions)},
  )


# The overrides, and the steps after which a phase ends.
_METHODS = {
  "none": (_sharing(mode="none"), ()),
  "swe": (_sharing(untie_step=4), (4,)),
  "loops": (
    _sharing(
      4,
      untie_step=4,
      loops=[{"loops": 1, "until_step": 2}, {"loops": 2, "until_step": 3}],
    ),
    (2, 3, 4),
  ),
  "equal_init": (_sharing(mode="equal_init"), ()),
  "albert": (_sharing(untie_step=None, untie_fraction=1.0), (_STEPS,)),
  "reparameterize": (_sharing(mode="reparameterize"), ()),
  "staged": (
    _sharing(
      4,
      rule="staged",
      stages=[{"unit_size": 2, "from_step": 3}],
      untie_step=6,
    ),
    (3, 6),
  ),
  "adaptive": (_by_correlation("adaptive", rho=0.99), (4,)),
  "net2net": (_growing(2, "net2net", 0.4), (4,)),
  "stacking": (_growing(4, "stacking", 0.3, 0.6), (3, 6)),
}
# Each takes most of a minute. `swe` is in `tests/training/test_trainer.py` too.
_IN_EVERY_RUN = ("loops", "stacking")


class ResumeTest(runs.RunsTestCase):
  def _train(self, override, stops, precision="float32", replicas=1):
    """Trains to each stop in a new runner; returns it, and the switches."""
    # A dynamic scale and its counter are state, too.
    scale = "dynamic" if precision == "float16" else None
    runtime = {"mixed_precision_dtype": precision, "loss_scale": scale}
    config = tiny.config_of(self.base, override, {"runtime": runtime})
    performance.set_mixed_precision_policy(precision)
    directory = self.create_tempdir().full_path
    changed = []
    for stop in stops:
      strategy = toy.strategy_of(replicas)
      runner = tiny.make_runner(config, directory, strategy=strategy)
      phases = runner.trainer._phases  # pylint: disable=protected-access
      before = phases.name
      with strategy.scope():
        runner.controller.train(stop)
      if phases.name != before:
        changed.append(stop)
    return runner.trainer, changed

  def _check(self, override, switches, stops, *setup):
    straight, _ = self._train(override, [_STEPS], *setup)
    resumed, changed = self._train(override, stops, *setup)
    self.assertSequenceEqual(changed, switches)
    self.assert_same_state(resumed, straight)
    self.assertEqual(*map(_decisions, (resumed, straight)))

  def _check_at_switches(self, override, switches, *setup):
    stops = [stop for stop in switches if stop < _STEPS] or [_STEPS // 2]
    self._check(override, switches, [*stops, _STEPS], *setup)

  @parameterized.product(
    method=("net2net", "stacking", "loops"),
    setup=(("float32", 2), ("bfloat16", 1), ("float16", 1), ("float16", 2)),
  )
  @pytest.mark.slow
  def test_in_other_precisions_and_on_two_replicas(self, method, setup):
    self._check_at_switches(*_METHODS[method], *setup)

  @parameterized.named_parameters(
    (name, *_METHODS[name]) for name in _IN_EVERY_RUN
  )
  def test_resumed_equals_straight(self, override, switches):
    self._check_at_switches(override, switches)

  @parameterized.named_parameters(
    (name, *method) for name, method in _METHODS.items()
  )
  @pytest.mark.slow
  def test_resumed_around_a_switch_equals_straight(self, override, switches):
    around = {
      stop
      for switch in switches or (_STEPS // 2,)
      for stop in (switch - 1, switch, switch + 1)
      if stop < _STEPS
    }
    self._check(override, switches, [*sorted(around), _STEPS])


def _decisions(trainer):
  """Returns what a rule decided, or found in the checkpoint as decided."""
  rule = trainer._phases.state.get("untie_rule")  # pylint: disable=protected-access
  return getattr(rule, "decisions", [])
