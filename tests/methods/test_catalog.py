"""What every method of the catalog has, and what it says of unknown ones."""

import dataclasses
import importlib
import inspect
import pathlib

import pytest

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import sizes

_SIZE = sizes.SIZES["large"]
_STEPS = 1003
_METHODS = catalog.methods()


def _read(task):
  return catalog.read(task, _STEPS, _SIZE.num_layers)


@pytest.mark.parametrize("name", _METHODS)
def test_the_module_of_a_method_is_its_card(name):
  module, function = _METHODS[name].build.split(":")
  module = importlib.import_module(module)
  assert callable(getattr(module, function))
  words = ["What:", "Use:", "Cost:", "Where it does not help:"]
  starts = [inspect.getdoc(module).find(f"\n\n{word} ") for word in words]
  assert -1 not in starts and starts == sorted(starts)


@pytest.mark.parametrize("name", _METHODS)
def test_its_task_chooses_it_and_its_phases_are_the_run(name):
  method = _METHODS[name]
  choice = _read(method.task)
  found = catalog.find(choice)
  assert found.name == (method.alias_of or name)
  if method.alias_of:  # Only the run itself tells when it unties.
    with pytest.raises(errors.UsageError, match=f"rule is '{name}'"):
      found.phases(choice, _SIZE)
    return
  phases = found.phases(choice, _SIZE)
  assert sum(phase.steps for phase in phases) == _STEPS
  assert phases[-1].size == _SIZE


@pytest.mark.parametrize(
  "known, register, change",
  [
    (catalog.methods, catalog.register, {"build": "mine:build"}),
    (catalog.rules, catalog.register_rule, {"make": "mine:make"}),
  ],
)
def test_a_name_is_taken_once(known, register, change):
  before = known()
  for name, entry in before.items():
    assert entry.name == name
    register(entry)  # The same once more: a module that is imported twice.
    with pytest.raises(ValueError, match=f"{name!r} already"):
      register(dataclasses.replace(entry, **change))
  assert known() == before


@pytest.mark.parametrize(
  "task, message",
  [
    (
      {"sharing": {"mode": "swee"}},
      "task.sharing.mode ('swee') must be one of equal_init, none, "
      "reparameterize, stem_branch, swe; did you mean swe?",
    ),
    (
      {"growth": {"method": "weaving"}},
      "task.growth.method ('weaving') must be one of net2net, stacking; "
      "register your own method with --plugins=MODULE.",
    ),
  ],
)
def test_an_unknown_method(task, message):
  with pytest.raises(errors.UsageError) as error:
    catalog.find(_read(task))
  assert str(error.value) == message


def test_the_page_shows_the_plugin_that_is_tested():
  here = pathlib.Path(__file__).parent
  plugin = (here / "outside.py").read_text("utf-8").partition('"""\n\n')[2]
  page = (here.parents[1] / "docs" / "methods.md").read_text("utf-8")
  assert plugin.startswith("from swe_tf") and plugin in page
