"""What a method and an untie rule consist of. Imports no TensorFlow.

`catalog.py` lists the existing ones.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.modeling import sizes
from swe_tf.sharing import loops as loops_lib
from swe_tf.sharing import units as units_lib
from swe_tf.sharing import untie_step as untie_step_lib

BASELINE, SWE, ALBERT = "baseline", "swe", "albert"
NONE = "none"  # Of `task.sharing.mode` and of `task.growth.method`.
FIXED, STAGED = "fixed", "staged"
COPY, OWN = "copy", "own"  # Of `task.sharing.second_moments`.
# Fields of `task.sharing` that, when changed, depart from Algorithm 1 as
# printed; with their defaults.
KNOBS = {
  "share": units_lib.ALL,
  "own_layers": 0,
  "shared_learning_rate_scale": 1.0,
  "untie_warmup_steps": 0,
  "second_moments": COPY,
  "untied_as": "copies",
}


@dataclasses.dataclass(frozen=True)
class Phase:
  """A part of a run in which every step is the same program.

  Attributes:
    name: Its name.
    steps: The number of steps.
    size: The size of the model that is trained in it.
    own_layers: How many layers have distinct weights.
  """

  name: str
  steps: int
  size: sizes.Size
  own_layers: int


@dataclasses.dataclass(frozen=True)
class Choice:
  """What a config says about the method.

  Attributes:
    mode: `task.sharing.mode`.
    rule: `task.sharing.rule`.
    growth: `task.growth.method`.
    unit_size: The number of layers in a unit.
    untie_step: Tau; None if the config does not fix it.
    train_steps: The number of steps in the run.
    num_layers: The number of layers in the model; None if unknown.
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
    if self.untie_step == 0:
      return True
    num_layers = self.num_layers
    return num_layers is not None and (
      self.unit_size == num_layers - 2 * self.own_layers
    )

  @property
  def knobs(self) -> dict[str, Any]:
    """The fields that depart from Algorithm 1, except `loops`."""
    return {
      name: self.sharing[name]
      for name, default in KNOBS.items()
      if self.sharing.get(name, default) != default
    }

  @property
  def own_layers(self) -> int:
    """How many layers at either end of the stack are never tied."""
    return self.sharing.get("own_layers") or 0


def shared_then_unshared(choice: Choice, size: sizes.Size) -> list[Phase]:
  """Returns the phases of a method that unties at tau."""
  tau = choice.untie_step
  if tau is None:
    raise errors.UsageError(
      f"task.sharing.rule is {choice.rule!r}, so the untie step is known only "
      f"once the run unties. For an estimate, set task.sharing.rule={FIXED} "
      "and the untie_fraction that you expect."
    )
  phases = _looped if choice.sharing.get("loops") else _staged
  shared = phases(choice, size, tau)
  last = Phase("unshared", choice.train_steps - tau, size, size.num_layers)
  return [phase for phase in (*shared, last) if phase.steps]


def _looped(choice: Choice, size: sizes.Size, tau: int) -> list[Phase]:
  """Returns the shared phases of a unit that is applied more and more often."""
  unit, own = choice.unit_size, 2 * choice.own_layers
  schedule = loops_lib.resolve(
    choice.sharing["loops"],
    num_units=(size.num_layers - own) // unit,
    untie_step=tau,
    train_steps=choice.train_steps,
  )
  found, begin = [], 0
  for end, loops in (*schedule.stages, (tau, schedule.num_units)):
    applied = dataclasses.replace(size, num_layers=own + unit * loops)
    found.append(
      Phase(f"shared, {loops} loops", end - begin, applied, own + unit)
    )
    begin = end
  return found


def _staged(choice: Choice, size: sizes.Size, tau: int) -> list[Phase]:
  """Returns the shared phases of units that grow."""
  units = {0: choice.unit_size}
  for stage in choice.sharing.get("stages") or ():
    begin = untie_step_lib.resolve_untie_step(
      choice.train_steps,
      untie_step=stage.get("from_step"),
      untie_fraction=stage.get("from_fraction"),
    )
    units[begin] = stage["unit_size"]
  ends = [*sorted(units)[1:], tau]
  own = 2 * choice.own_layers
  return [
    Phase(
      f"shared {unit}x{(size.num_layers - own) // unit}" if begin else "shared",
      end - begin,
      size,
      own + unit,
    )
    for (begin, unit), end in zip(sorted(units.items()), ends)
  ]


def never_shared(choice: Choice, size: sizes.Size) -> list[Phase]:
  """Returns the one phase of a method that ties nothing."""
  return [Phase("unshared", choice.train_steps, size, size.num_layers)]


def mode_is(mode: str) -> Callable[[Choice], bool]:
  return lambda choice: choice.mode == mode and choice.growth == NONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """A way to train. Its module's docstring is its card.

  Attributes:
    name: Its name in studies and reports.
    task: The overrides of `task` that choose it.
    build: Makes a `training.phases.Training` from `Ingredients`. A function, or
      the name of one, `module:function`.
    ignores: The axes of a study that do not matter to it.
    matches: Whether a config chooses it; by default, whether the config has the
      `sharing.mode` of `task`.
    phases: Returns its phases, for the cost model.
    alias_of: The method that this is with another rule; reports use that name.
    fractions: For a model that grows, the default fractions of the steps after
      which it does.
    check: Raises unless the method can train an experiment. A function or a
      name, like `build`.
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
    return mode_is(self.task["sharing"]["mode"])(choice)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
  """A rule that says when to untie.

  Attributes:
    name: `task.sharing.rule`.
    make: Makes an `UntieRule` from `task.sharing` and the number of steps. A
      function, or the name of one, `module:function`.
    fixes_tau: Whether `untie_step` or `untie_fraction` of the config sets tau.
  """

  name: str
  make: str | Callable[..., Any]
  fixes_tau: bool = False


def halve_width(size: sizes.Size, times: int) -> sizes.Size:
  """Returns a size with the width halved `times` times."""
  names = ("hidden_size", "num_attention_heads", "intermediate_size")
  return dataclasses.replace(
    size, **{name: getattr(size, name) // 2**times for name in names}
  )


def halve_depth(size: sizes.Size, times: int) -> sizes.Size:
  """Returns a size with the depth halved `times` times."""
  return dataclasses.replace(size, num_layers=size.num_layers // 2**times)
