"""The catalog of methods and untie rules, and the method of one run.

A method or a rule is one file of this folder, or of a plug-in, that registers
itself:

    catalog.register(catalog.Method(
      name="frozen", mode="frozen", build=build,
      ignores=frozenset({"tau", "units"})))
    catalog.register_rule(catalog.Rule(name="halfway", make=make_halfway))

The files of this folder import TensorFlow, and are imported when the catalog is
first read; this file alone does not need it.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import importlib
import pkgutil
from typing import Any

from swe_tf import errors
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import untie_step as untie_step_lib

BASELINE, SWE, ALBERT = "baseline", "swe", "albert"
NONE = "none"  # Of `task.sharing.mode` and of `task.growth.method`.
FIXED, STAGED = "fixed", "staged"


@dataclasses.dataclass(frozen=True)
class Resolved:
  """What the config of a run says about its method, in steps and layers.

  The one place where fractions and lists of stages become numbers; `resolve`
  and `read` make it. The untie step is tau of Algorithm 1; None if the method
  never unties, or only its rule knows when.
  """

  sharing: Any  # `task.sharing`, a `SharingConfig`.
  growth: Any  # `task.growth`, a `GrowthConfig`.
  train_steps: int
  num_layers: int | None  # None if unknown.
  untie_step: int | None

  @functools.cached_property
  def stages(self) -> list[tuple[int, int]]:
    """The step at which each of `task.sharing.stages` begins, and its unit."""
    return sorted(
      (
        untie_step_lib.resolve_untie_step(
          self.train_steps,
          untie_step=stage.from_step,
          untie_fraction=stage.from_fraction,
        ),
        stage.unit_size,
      )
      for stage in self.sharing.stages
    )

  @functools.cached_property
  def loops(self) -> untie_step_lib.LoopSchedule | None:
    """How often the unit is applied while shared; None for always fully."""
    if not self.sharing.loops:
      return None
    assert self.num_layers is not None and self.untie_step is not None
    return untie_step_lib.resolve_loops(
      [stage.as_dict() for stage in self.sharing.loops],
      num_units=self.num_layers // self.sharing.unit_size,
      untie_step=self.untie_step,
      train_steps=self.train_steps,
    )

  @property
  def is_never_shared(self) -> bool:
    """Whether no two layers would ever be tied."""
    return self.untie_step == 0 or self.sharing.unit_size == self.num_layers


@dataclasses.dataclass(frozen=True)
class Phase:
  """A part of a run in which every step is the same program."""

  name: str
  steps: int
  size: sizes.Size  # Of the model that is trained in it.
  distinct_layers: int  # How many layers have distinct weights.


def never_shared(resolved: Resolved, size: sizes.Size) -> list[Phase]:
  """Returns the one phase of a method that ties nothing."""
  return [Phase("unshared", resolved.train_steps, size, size.num_layers)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """A way to train.

  Attributes:
    name: Its name in studies and reports.
    build: Makes a `training.phases.Training` from `Ingredients`.
    mode: The `task.sharing.mode` that chooses it.
    growth: The `task.growth.method` that chooses it, for a model that grows.
    sharing: Other fields of `task.sharing` that a study sets for it. A method
      that has some is a special case of the one with the same mode.
    ignores: The axes of a study that do not matter to it.
    phases: Returns its phases, for the cost model.
    special_case: Returns the name of the method that a config of this mode
      really is, or None.
    check: Raises unless the method can train an experiment.
  """

  name: str
  build: Callable[..., Any]
  mode: str = NONE
  growth: str = NONE
  sharing: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  ignores: frozenset[str] = frozenset()
  phases: Callable[[Resolved, sizes.Size], list[Phase]] = never_shared
  special_case: Callable[[Resolved], str | None] = lambda resolved: None
  check: Callable[[Any, Resolved], None] = lambda config, resolved: None

  @property
  def task(self) -> dict[str, Any]:
    """The overrides of `task` that choose it."""
    grown = {"growth": {"method": self.growth}} if self.growth != NONE else {}
    return {"sharing": {"mode": self.mode, **self.sharing}, **grown}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
  """A rule that says when to untie."""

  name: str  # `task.sharing.rule`.
  make: Callable[[Resolved], Any]  # Makes an `UntieRule`.
  fixes_tau: bool = False  # Whether the config's step or fraction sets tau.


_METHODS: dict[str, Method] = {}
_RULES: dict[str, Rule] = {}


def register(method: Method) -> None:
  """Registers a method; its name must be new."""
  if _METHODS.setdefault(method.name, method) != method:
    raise ValueError(f"There is a method {method.name!r} already.")


def register_rule(rule: Rule) -> None:
  """Registers an untie rule; its name must be new."""
  if _RULES.setdefault(rule.name, rule) != rule:
    raise ValueError(f"There is an untie rule {rule.name!r} already.")


@functools.cache
def _load() -> None:
  """Imports the files of this folder, which register themselves."""
  package = __name__.rpartition(".")[0]
  for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
    importlib.import_module(f"{package}.{module.name}")


def methods() -> Mapping[str, Method]:
  """Returns all methods by name.

  For a study, SWE with a recipe, or with a rule that finds tau by itself, is a
  method too.
  """
  from swe_tf.methods import config as config_lib  # Imports TensorFlow.

  _load()
  # A recipe sets these, whatever the rest of the study says.
  names = ("unit_size", "untie_fraction", "untie_step", "loops")
  plain = config_lib.SharingConfig().as_dict()
  unset = {name: plain[name] for name in names}
  rules = [rule.name for rule in _RULES.values() if not rule.fixes_tau]
  special = [({"rule": name}, {"tau"}) for name in rules]
  special += [
    ({**unset, "recipe": name}, {"tau", "units"}) for name in config_lib.RECIPES
  ]
  of_swe = {
    name: dataclasses.replace(
      _METHODS[SWE], name=name, sharing=sharing, ignores=frozenset(ignores)
    )
    for name, (sharing, ignores) in zip([*rules, *config_lib.RECIPES], special)
  }
  return dict(sorted((_METHODS | of_swe).items()))


def rules() -> Mapping[str, Rule]:
  _load()
  return dict(_RULES)


def tau_of(sharing: Any, train_steps: int) -> int:
  """Returns the tau of `task.sharing`, for a rule that fixes it."""
  return untie_step_lib.resolve_untie_step(
    train_steps,
    untie_step=sharing.untie_step,
    untie_fraction=sharing.untie_fraction,
  )


def read(
  task: Mapping[str, Any], train_steps: int, num_layers: int | None
) -> Resolved:
  """Resolves the method of a saved `task`; raises if tau is impossible.

  Without `sharing` it is a task of stock Model Garden.
  """
  from swe_tf.methods import config as config_lib  # Imports TensorFlow.

  sharing = config_lib.SharingConfig(mode=NONE)
  growth = config_lib.GrowthConfig()
  for config, name in ((sharing, "sharing"), (growth, "growth")):
    # Not strict: another version may have had other fields.
    config.override(dict(task.get(name) or {}), is_strict=False)
  return _resolve(sharing, growth, train_steps, num_layers)


def resolve(config: Any) -> Resolved:
  """Resolves the method of an experiment that has `task.sharing`."""
  encoder = registry.encoder_of(config.task.as_dict())
  return _resolve(
    config.task.sharing,
    config.task.growth,
    config.trainer.train_steps,
    encoder.num_layers if encoder else None,
  )


def _resolve(
  sharing: Any, growth: Any, train_steps: int, num_layers: int | None
) -> Resolved:
  rule, tau = rules().get(sharing.rule), None
  if sharing.mode == SWE and rule is not None and rule.fixes_tau:
    with errors.part():
      tau = tau_of(sharing, train_steps)
  return Resolved(sharing, growth, train_steps, num_layers, tau)


def _unknown(field: str, value: str, known: Any, other: str) -> Exception:
  return errors.UsageError(
    f"task.{field} ({value!r}) must be one of {', '.join(known)}; "
    + errors.nearest(value, known, other)
  )


def chosen(resolved: Resolved) -> Method:
  """Returns the method by mode or by growth, special cases aside."""
  mode, growth = resolved.sharing.mode, resolved.growth.method or NONE
  plain = [method for method in methods().values() if not method.sharing]
  for method in plain:
    if method.growth == growth and (growth != NONE or method.mode == mode):
      return method
  field, value, known = "sharing.mode", mode, {m.mode for m in plain}
  if growth != NONE:
    field, value = "growth.method", growth
    known = {m.growth for m in plain} - {NONE}
  other = "register your own in a plug-in."
  raise _unknown(field, value, sorted(known), other)


def find(resolved: Resolved) -> Method:
  """Returns the method that a config chooses; raises `UsageError` if none."""
  method = chosen(resolved)
  special = method.special_case(resolved)
  return methods()[special] if special else method


def make_rule(resolved: Resolved) -> Any:
  """Returns the `UntieRule` of a config; raises `UsageError` if none."""
  name, known = resolved.sharing.rule, rules()
  if name not in known:
    raise _unknown("sharing.rule", name, known, "see docs/methods.md.")
  if resolved.sharing.stages and name != STAGED:
    raise errors.UsageError(
      f"task.sharing.stages is set, but task.sharing.rule is {name!r}, which "
      f"has none; set it to {STAGED!r}."
    )
  try:
    return known[name].make(resolved)
  except errors.UsageError as error:
    # Gin appends lines of its own to what a configurable raises.
    raise errors.UsageError(f"{errors.first_line(error)}.") from error


def check(config: Any) -> None:
  """Raises unless an experiment can be trained by the method it chooses."""
  resolved = resolve(config)
  sharing, growth = resolved.sharing, resolved.growth
  method = find(resolved)
  with errors.part():
    tau_of(sharing, resolved.train_steps)  # Even if the method has none.
  for units in (sharing, *sharing.stages):
    with errors.part():
      if resolved.num_layers is not None:
        untie_step_lib.check_unit_size(units.unit_size, resolved.num_layers)
  encoder = registry.encoder_of(config.task.as_dict())
  with errors.part():
    if encoder is not None and sharing.mode != NONE:
      encoder.check_can_share(sharing.unit_size)
  with errors.part():
    make_rule(resolved)
  if growth.fractions and method.growth == NONE:
    errors.fault(
      "task.growth.fractions is set, but task.growth.method is 'none'."
    )
  if sharing.loops and method.mode != SWE:
    errors.fault(
      f"task.sharing.loops is set, but the method is {method.name!r}, which "
      "ties no layers."
    )
  method.check(config, resolved)


def apply(ingredients: Any) -> Any:
  """Returns the `Training` of `Ingredients` by the method of its experiment."""
  resolved = resolve(ingredients.config)
  # A rule that is given in code may untie at any step, so the config does not
  # tell a special case.
  method = (chosen if ingredients.untie_rule else find)(resolved)
  return method.build(ingredients)
