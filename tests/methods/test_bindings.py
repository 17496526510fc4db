"""What gin binds of the method stands in the config that a run leaves."""

import pathlib

import gin
import pytest

from swe_tf import errors
from swe_tf.sharing import schedule
from tests import tiny

_FOLDER = pathlib.Path(__file__).parents[2] / "gin"


@gin.configurable
class UntieByMoon(schedule.UntieRule):
  def __init__(self, phase="full", every=3):
    self.phase, self.every = phase, every

  def next_decision(self, step):
    return step + self.every

  def should_untie(self, step, gradient_cosine):
    return step >= self.every


@pytest.fixture(autouse=True)
def _without_bindings():
  yield
  gin.clear_config()


def _sharing(*bindings):
  gin.parse_config(bindings)
  return tiny.config_of(tiny.overrides("unused")).task.sharing


def test_nothing_bound_changes_nothing():
  sharing = _sharing()
  assert (sharing.rule, sharing.untie_step) == ("fixed", tiny.TAU)
  assert sharing.bindings == []


def test_a_fixed_step_that_no_trainer_asks_for_changes_nothing():
  assert _sharing("UntieAtStep.untie_step = 2").untie_step == tiny.TAU


def test_a_fixed_step():
  sharing = _sharing(
    "SharedWeightsTrainer.untie_rule = @UntieAtStep()",
    "UntieAtStep.untie_step = 9",
  )
  assert (sharing.rule, sharing.untie_step) == ("fixed", 9)


def test_a_rule_of_ones_own_and_its_values():
  sharing = _sharing(
    "SharedWeightsTrainer.untie_rule = @UntieByMoon()",
    "UntieByMoon.phase = 'new'",
  )
  assert sharing.rule == "UntieByMoon"
  assert sharing.bindings == ["UntieByMoon.phase = 'new'"]


def test_fields_of_the_method_can_be_bound_and_names_are_checked():
  gin.parse_config(["sharing.unit_size = 2", "sharing.mode = 'equal_init'"])
  sharing = tiny.config_of(tiny.overrides("unused")).task.sharing
  assert (sharing.unit_size, sharing.mode) == (2, "equal_init")
  gin.clear_config()
  gin.parse_config(["sharing.unit_sise = 2"])
  with pytest.raises(errors.UsageError, match="did you mean unit_size"):
    tiny.config_of(tiny.overrides("unused"))


# What each file of gin/ leaves in params.yaml, for a model of 4 layers.
_GIN = {
  "units_2 tau_20": {"unit_size": 2, "untie_fraction": 0.2},
  "units_4": {"unit_size": 4},
  "albert": {"untie_fraction": 1.0},
  "staged": {"rule": "staged"},
  "adaptive": {"rule": "adaptive", "check_interval": 1000},
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
    "task": {
      "model": {"encoder": {"any": {"num_layers": 4}}},
      "sharing": {"untie_step": None},
    },
    "trainer": {"train_steps": 20},  # 5% of it is a step, for `staged`.
  }
  task = tiny.config_of(tiny.overrides("unused"), changes).task
  left = task.sharing.as_dict() | {"growth": task.growth.method}
  assert {key: left[key] for key in _GIN[names]} == _GIN[names]


def test_every_gin_file_is_read_by_a_test():
  known = {name for names in _GIN for name in names.split()}
  files = {path.stem for path in _FOLDER.glob("*.gin")}
  # Model Garden's ViT is run by tests/test_examples.py.
  assert files - {"swe", "custom_rule", "vit"} == known
