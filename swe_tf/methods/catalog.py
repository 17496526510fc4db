"""The catalog of methods: names, how a config chooses them, tau, phases.

The only place that tells methods and untie rules apart. Tasks find the method
to train here, studies take their values from it, reports label runs by it, and
the cost model gets phases from it. All of them know a method or a rule of your
own once you register it:

    catalog.register(catalog.Method(
      name="frozen", task={"sharing": {"mode": "frozen"}},
      ignores=frozenset({"tau", "units"}), build="my_project.frozen:build"))
    catalog.register_rule(catalog.Rule(name="halfway", make=make_halfway))

Imports no TensorFlow: `build` and `make` may be named as `module:function`.
"""

from collections.abc import Callable, Mapping
import importlib
from typing import Any

from swe_tf import errors
from swe_tf.methods import method as method_lib
from swe_tf.modeling import sizes
from swe_tf.sharing import untie_step as untie_step_lib

BASELINE, SWE, ALBERT = method_lib.BASELINE, method_lib.SWE, method_lib.ALBERT
NONE = method_lib.NONE
FIXED, STAGED = method_lib.FIXED, method_lib.STAGED
KNOBS = method_lib.KNOBS
Choice = method_lib.Choice
Phase = method_lib.Phase
Method = method_lib.Method
Rule = method_lib.Rule

_METHODS: dict[str, Method] = {}
_RULES: dict[str, Rule] = {}


def register(method: Method) -> None:
  """Registers a method; its name must be new."""
  _add(_METHODS, "method", method)


def register_rule(rule: Rule) -> None:
  """Registers an untie rule; its name must be new."""
  _add(_RULES, "untie rule", rule)


def _add(known: dict[str, Any], kind: str, entry: Any) -> None:
  if known.get(entry.name, entry) != entry:
    raise ValueError(f"There is a {kind} {entry.name!r} already.")
  known[entry.name] = entry


def methods() -> Mapping[str, Method]:
  """Returns all methods by name, the built-in ones first."""
  return dict(_METHODS)


def rules() -> Mapping[str, Rule]:
  """Returns all untie rules by name, the built-in ones first."""
  return dict(_RULES)


def load(function: str | Callable[..., Any]) -> Callable[..., Any]:
  """Returns the function, imported if given as `module:function`."""
  if not isinstance(function, str):
    return function
  module, name = function.split(":")
  return getattr(importlib.import_module(module), name)


def read(
  task: Mapping[str, Any], train_steps: int, num_layers: int | None
) -> Choice:
  """Reads what a config says about the method.

  Args:
    task: The config of a task as nested tables. Without `sharing` it is a task
      of stock Model Garden.
    train_steps: `trainer.train_steps`.
    num_layers: The number of layers in the model; None if unknown.
  """
  sharing, growth = task.get("sharing") or {}, task.get("growth") or {}
  mode, rule = sharing.get("mode", NONE), sharing.get("rule") or FIXED
  tau = None
  if mode == SWE and rule in _RULES and _RULES[rule].fixes_tau:
    tau = untie_step_lib.resolve_untie_step(
      train_steps,
      untie_step=sharing.get("untie_step"),
      untie_fraction=sharing.get(
        "untie_fraction", untie_step_lib.PAPERS_FRACTION
      ),
    )
  return Choice(
    mode=mode,
    rule=rule,
    growth=growth.get("method") or NONE,
    unit_size=int(sharing.get("unit_size") or 1),
    untie_step=tau,
    train_steps=train_steps,
    num_layers=num_layers,
    sharing=sharing,
    growth_config=growth,
  )


def find(choice: Choice) -> Method:
  """Returns the method that a config chooses.

  Raises:
    UsageError: If no such method is registered.
  """
  for method in _METHODS.values():
    if method.is_chosen(choice):
      return method
  field, value, table, key = "sharing.mode", choice.mode, "sharing", "mode"
  if choice.growth != NONE:
    field, value = "growth.method", choice.growth
    table, key = "growth", "method"
  known = {m.task[table][key] for m in _METHODS.values() if table in m.task}
  own = "register your own method with --plugins=MODULE."
  raise errors.UsageError(
    f"task.{field} ({value!r}) must be one of {', '.join(sorted(known))}; "
    + errors.nearest(value, known, own)
  )


def growth_steps(choice: Choice) -> list[int]:
  """Returns the updates after which a model grows."""
  fractions = choice.growth_config.get("fractions") or find(choice).fractions
  return [round(fraction * choice.train_steps) for fraction in fractions]


def _growth_phases(
  shrink: Callable[[sizes.Size, int], sizes.Size],
) -> Callable[[Choice, sizes.Size], list[Phase]]:
  """Returns a function that computes the phases of a model that grows."""

  def phases(choice: Choice, size: sizes.Size) -> list[Phase]:
    ends = growth_steps(choice)
    found, begin = [], 0
    for stage, end in enumerate([*ends, choice.train_steps]):
      small = shrink(size, len(ends) - stage)
      name = f"{small.num_layers}x{small.hidden_size}"
      found.append(Phase(name, end - begin, small, small.num_layers))
      begin = end
    return [phase for phase in found if phase.steps]

  return phases


def _grown(name: str) -> Callable[[Choice], bool]:
  return lambda choice: choice.growth == name


_IGNORES_ALL = frozenset({"tau", "units"})
_NO_SHARING = {"sharing": {"mode": NONE}}

# The order matters: the first method that matches is chosen. Sharing nothing at
# all is the baseline whatever the mode; sharing to the end is ALBERT-like.
for _method in (
  Method(
    name=BASELINE,
    task=_NO_SHARING,
    build="swe_tf.methods.baseline:build",
    ignores=_IGNORES_ALL,
    matches=lambda choice: (
      choice.growth == NONE
      and (
        choice.mode == NONE
        or choice.mode in (SWE, "reparameterize")
        and choice.is_never_shared
      )
    ),
  ),
  Method(
    name=ALBERT,
    task={"sharing": {"mode": SWE, "untie_fraction": 1.0, "untie_step": None}},
    build="swe_tf.methods.albert:build",
    ignores=frozenset({"tau"}),
    matches=lambda choice: (
      method_lib.mode_is(SWE)(choice)
      and choice.rule == FIXED
      and choice.untie_step == choice.train_steps
    ),
    phases=method_lib.shared_then_unshared,
  ),
  Method(
    name=SWE,
    task={"sharing": {"mode": SWE}},
    build="swe_tf.methods.swe:build",
    phases=method_lib.shared_then_unshared,
  ),
  *(
    Method(
      name=rule,
      task={"sharing": {"mode": SWE, "rule": rule}},
      build="swe_tf.methods.swe:build",
      ignores=frozenset({"tau"}),
      alias_of=SWE,
    )
    for rule in ("adaptive", "split")
  ),
  Method(
    name="equal_init",
    task={"sharing": {"mode": "equal_init"}},
    build="swe_tf.methods.equal_init:build",
    ignores=frozenset({"tau"}),
  ),
  Method(
    name="reparameterize",
    task={"sharing": {"mode": "reparameterize"}},
    build="swe_tf.methods.reparameterize:build",
    ignores=frozenset({"tau"}),
  ),
  Method(
    name="stem_branch",
    task={"sharing": {"mode": "stem_branch"}},
    build="swe_tf.methods.stem_branch:build",
    ignores=frozenset({"tau"}),
  ),
  Method(
    name="net2net",
    task=_NO_SHARING | {"growth": {"method": "net2net"}},
    build="swe_tf.methods.net2net:build",
    ignores=_IGNORES_ALL,
    matches=_grown("net2net"),
    phases=_growth_phases(method_lib.halve_width),
    fractions=(0.1,),  # Appendix B.1: 50k of 500k steps.
  ),
  Method(
    name="stacking",
    task=_NO_SHARING | {"growth": {"method": "stacking"}},
    build="swe_tf.methods.stacking:build",
    ignores=_IGNORES_ALL,
    matches=_grown("stacking"),
    phases=_growth_phases(method_lib.halve_depth),
    fractions=(0.125, 0.3),  # Gong et al. 2019: 50k and 120k of 400k steps.
  ),
):
  register(_method)

for _rule in (
  Rule(name=FIXED, make="swe_tf.methods.rules:make_fixed", fixes_tau=True),
  Rule(name=STAGED, make="swe_tf.methods.rules:make_staged", fixes_tau=True),
  Rule(name="adaptive", make="swe_tf.methods.rules:make_adaptive"),
  Rule(name="split", make="swe_tf.methods.rules:make_split"),
):
  register_rule(_rule)
