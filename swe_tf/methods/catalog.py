"""What a method is: its name, how a config chooses it, its tau, its phases.

The only place that tells methods and untie rules apart. Tasks train what it
names, studies take their values from it, reports label runs by it, the cost
model asks it for phases. Register a method or a rule of your own, and all of
them know it:

    catalog.register(catalog.Method(
      name="frozen", task={"sharing": {"mode": "frozen"}},
      ignores=frozenset({"tau", "units"}), build="my_project.frozen:build"))
    catalog.register_rule(catalog.Rule(name="halfway", make=make_halfway))

Imports no TensorFlow: `build` and `make` may be named as `module:function`.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import importlib
from typing import Any

from swe_tf import errors
from swe_tf.modeling import sizes
from swe_tf.sharing import untie_step as untie_step_lib

BASELINE, SWE, ALBERT = "baseline", "swe", "albert"
NONE = "none"  # Of `task.sharing.mode` and of `task.growth.method`.
FIXED, STAGED = "fixed", "staged"


@dataclasses.dataclass(frozen=True)
class Phase:
  """A part of a run in which every step is the same program.

  Attributes:
    name: Its name.
    steps: How many steps it has.
    size: The model that is trained in it.
    own_layers: How many layers have weights of their own.
  """

  name: str
  steps: int
  size: sizes.Size
  own_layers: int


@dataclasses.dataclass(frozen=True)
class Choice:
  """What a config says about the method, read.

  Attributes:
    mode: `task.sharing.mode`.
    rule: `task.sharing.rule`.
    growth: `task.growth.method`.
    unit_size: The layers of a unit.
    untie_step: Tau; None if the config does not fix it.
    train_steps: The steps of the run.
    num_layers: The layers of the model, None if they are not known.
    sharing: All of `task.sharing`.
    growth_config: All of `task.growth`.
  """

  mode: str
  rule: str
  growth: str
  unit_size: int
  untie_step: int | None
  train_steps: int
  num_layers: int | None
  sharing: Mapping[str, Any]
  growth_config: Mapping[str, Any]

  @property
  def is_never_shared(self) -> bool:
    """Whether no two layers would ever be tied."""
    return self.untie_step == 0 or self.unit_size == self.num_layers


def shared_then_unshared(choice: Choice, size: sizes.Size) -> list[Phase]:
  """Returns the phases of a method that unties at tau."""
  tau = choice.untie_step
  if tau is None:
    raise errors.UsageError(
      f"task.sharing.rule is {choice.rule!r}, so that only the run itself "
      f"tells when it unties. Ask with task.sharing.rule={FIXED}, for an "
      "untie_fraction that you expect."
    )
  phases = [
    Phase("shared", tau, size, choice.unit_size),
    Phase("unshared", choice.train_steps - tau, size, size.num_layers),
  ]
  return [phase for phase in phases if phase.steps]


def never_shared(choice: Choice, size: sizes.Size) -> list[Phase]:
  """Returns the one phase of a method that ties nothing."""
  return [Phase("unshared", choice.train_steps, size, size.num_layers)]


def _mode_is(mode: str) -> Callable[[Choice], bool]:
  return lambda choice: choice.mode == mode and choice.growth == NONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """A way to train. Its module's docstring is its card.

  Attributes:
    name: Its name in studies and reports.
    task: What chooses it, below `task`.
    build: Makes a `training.phases.Training` of `Ingredients`. A function, or
      the name of one, `module:function`.
    ignores: The axes of a study that do not matter to it.
    matches: Whether a config chooses it; by default, whether the config has the
      `sharing.mode` of `task`.
    phases: What it costs when: its phases.
    alias_of: The method that it is, with another rule: its name in reports.
    fractions: For a model that grows, after which parts of the steps.
    check: Raises unless an experiment can be trained so. As `build`.
  """

  name: str
  task: Mapping[str, Any]
  build: str | Callable[..., Any]
  ignores: frozenset[str] = frozenset()
  matches: Callable[[Choice], bool] | None = None
  phases: Callable[[Choice, sizes.Size], list[Phase]] = never_shared
  alias_of: str | None = None
  fractions: Sequence[float] = ()
  check: str | Callable[..., None] | None = None

  def is_chosen(self, choice: Choice) -> bool:
    if self.alias_of is not None:
      return False
    if self.matches is not None:
      return self.matches(choice)
    return _mode_is(self.task["sharing"]["mode"])(choice)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
  """A rule that says when to untie.

  Attributes:
    name: `task.sharing.rule`.
    make: Makes the `UntieRule` of a `task.sharing` and a number of steps. A
      function, or the name of one, `module:function`.
    fixes_tau: Whether tau is `untie_step` or `untie_fraction` of the config.
  """

  name: str
  make: str | Callable[..., Any]
  fixes_tau: bool = False


_METHODS: dict[str, Method] = {}
_RULES: dict[str, Rule] = {}


def register(method: Method) -> None:
  """Makes a method known; its name must be new."""
  _add(_METHODS, "method", method)


def register_rule(rule: Rule) -> None:
  """Makes an untie rule known; its name must be new."""
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
  """Returns a function, imported if it is a name, `module:function`."""
  if not isinstance(function, str):
    return function
  module, name = function.split(":")
  return getattr(importlib.import_module(module), name)


def read(
  task: Mapping[str, Any], train_steps: int, num_layers: int | None
) -> Choice:
  """Reads what a config says about the method.

  Args:
    task: The config of a task as nested tables. One without `sharing` is of
      stock Model Garden.
    train_steps: `trainer.train_steps`.
    num_layers: The layers of the model, None if they are not known.
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
    UsageError: If nobody registered it.
  """
  for method in _METHODS.values():
    if method.is_chosen(choice):
      return method
  field, value, table, key = "sharing.mode", choice.mode, "sharing", "mode"
  if choice.growth != NONE:
    field, value = "growth.method", choice.growth
    table, key = "growth", "method"
  known = {m.task[table][key] for m in _METHODS.values() if table in m.task}
  raise errors.UsageError(
    f"task.{field} ({value!r}) must be one of {', '.join(sorted(known))}; a "
    "method of your own is made known by --plugins=MODULE."
  )


def growth_steps(choice: Choice) -> list[int]:
  """Returns the updates after which a model grows."""
  fractions = choice.growth_config.get("fractions") or find(choice).fractions
  return [round(fraction * choice.train_steps) for fraction in fractions]


def _growth_phases(
  shrink: Callable[[sizes.Size, int], sizes.Size],
) -> Callable[[Choice, sizes.Size], list[Phase]]:
  """Returns the phases of a model that grows."""

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


def halve_width(size: sizes.Size, times: int) -> sizes.Size:
  """Returns a size with half the width, `times` times."""
  names = ("hidden_size", "num_attention_heads", "intermediate_size")
  return dataclasses.replace(
    size, **{name: getattr(size, name) // 2**times for name in names}
  )


def halve_depth(size: sizes.Size, times: int) -> sizes.Size:
  """Returns a size with half the layers, `times` times."""
  return dataclasses.replace(size, num_layers=size.num_layers // 2**times)


def _grown(name: str) -> Callable[[Choice], bool]:
  return lambda choice: choice.growth == name


_IGNORES_ALL = frozenset({"tau", "units"})
_NO_SHARING = {"sharing": {"mode": NONE}}

# The order matters: the first that is chosen is it. Sharing nothing at all is
# the baseline whatever the mode, sharing to the end is ALBERT's way.
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
      _mode_is(SWE)(choice)
      and choice.rule == FIXED
      and choice.untie_step == choice.train_steps
    ),
    phases=shared_then_unshared,
  ),
  Method(
    name=SWE,
    task={"sharing": {"mode": SWE}},
    build="swe_tf.methods.swe:build",
    phases=shared_then_unshared,
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
    phases=_growth_phases(halve_width),
    fractions=(0.1,),  # Appendix B.1: 50k of 500k steps.
    check="swe_tf.methods.growth:check",
  ),
  Method(
    name="stacking",
    task=_NO_SHARING | {"growth": {"method": "stacking"}},
    build="swe_tf.methods.stacking:build",
    ignores=_IGNORES_ALL,
    matches=_grown("stacking"),
    phases=_growth_phases(halve_depth),
    fractions=(0.125, 0.3),  # Gong et al. 2019: 50k and 120k of 400k steps.
    check="swe_tf.methods.growth:check",
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
