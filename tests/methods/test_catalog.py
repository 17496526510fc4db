"""What every method and rule of the catalog has, and what is unknown."""

import dataclasses
import pathlib

import pytest

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.modeling import sizes

_SIZE = sizes.SIZES["large"]
_STEPS = 1003
_METHODS = catalog.methods()


def _read(task):
  return catalog.read(task, _STEPS, _SIZE.num_layers)


@pytest.mark.parametrize("name", _METHODS)
def test_its_task_chooses_it_and_its_phases_are_the_run(name):
  resolved = _read(_METHODS[name].task)
  found = catalog.find(resolved)
  if name in catalog.rules():  # Only the run itself tells when it unties.
    assert found.name == catalog.SWE
    with pytest.raises(errors.UsageError, match=f"rule is '{name}'"):
      found.phases(resolved, _SIZE)
    return
  if name in config_lib.RECIPES:  # `validate()` applies it.
    sharing = config_lib.SharingConfig()
    sharing.override(_METHODS[name].task["sharing"])
    config_lib.apply_recipe(sharing, _SIZE.num_layers)
    resolved, name = _read({"sharing": sharing.as_dict()}), catalog.SWE
    first = found.phases(resolved, _SIZE)[0]
    assert first.size.num_layers < _SIZE.num_layers
  assert found.name == name
  phases = found.phases(resolved, _SIZE)
  assert sum(phase.steps for phase in phases) == _STEPS
  assert phases[-1].size == _SIZE


@pytest.mark.parametrize(
  "entry, register, change",
  [
    (_METHODS["swe"], catalog.register, {"build": print}),
    (catalog.rules()["fixed"], catalog.register_rule, {"make": print}),
  ],
)
def test_a_name_is_taken_once(entry, register, change):
  register(entry)  # The same once more: a module that is imported twice.
  with pytest.raises(ValueError, match=f"{entry.name!r} already"):
    register(dataclasses.replace(entry, **change))


def test_an_unknown_method():
  for task, message in (
    (
      {"sharing": {"mode": "swee"}},
      "task.sharing.mode ('swee') must be one of equal_init, none, "
      "reparameterize, swe; did you mean swe?",
    ),
    (
      {"growth": {"method": "weaving"}},
      "task.growth.method ('weaving') must be one of net2net, stacking; "
      "register your own in a plug-in.",
    ),
  ):
    with pytest.raises(errors.UsageError) as error:
      catalog.find(_read(task))
    assert str(error.value) == message


def _rule(**sharing):
  return catalog.make_rule(_read({"sharing": sharing}))


def test_rules_are_made_from_the_config():
  stages = [{"unit_size": 4, "from_step": 50}]
  rule = _rule(rule="staged", unit_size=2, untie_step=100, stages=stages)
  assert (rule.untie_step, rule.stages) == (100, [(50, 2)])
  assert rule.cosine_interval is None
  assert _rule(rule="adaptive", check_interval=7, rho=0.2).cosine_interval == 7


def test_the_page_shows_the_plugin_that_is_tested():
  here = pathlib.Path(__file__).parent
  plugin = (here / "outside.py").read_text("utf-8").partition('"""\n\n')[2]
  page = (here.parents[1] / "docs" / "methods.md").read_text("utf-8")
  assert plugin.startswith("import tensorflow") and plugin in page
