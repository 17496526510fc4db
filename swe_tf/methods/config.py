"""`task.sharing` and `task.growth`: the one form in which a method is chosen.

`catalog.Resolved` turns the fractions of a config into steps. A recipe is a set
of fields that was tried and measured (docs/map.md); none is the default, which
is Algorithm 1 as printed.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from official.modeling.hyperparams import base_config
from swe_tf import errors
from swe_tf import fields
from swe_tf.sharing import untie_step as untie_step_lib


@dataclasses.dataclass
class StageConfig(base_config.Config):
  """A stage with larger units, for `SharingConfig.rule=staged`.

  It begins after a fraction of `trainer.train_steps`, or after `from_step`.
  """

  unit_size: int = 1
  from_fraction: float = 0.0
  from_step: int | None = None


@dataclasses.dataclass
class LoopsConfig(base_config.Config):
  """How often the unit is applied while it is shared, and until when.

  Until a fraction of `trainer.train_steps`, or `until_step`, or the untie step.
  """

  loops: int = 0
  until_fraction: float | None = None
  until_step: int | None = None


@dataclasses.dataclass
class SharingConfig(base_config.Config):
  """How block weights are shared.

  Attributes:
    mode: `swe` shares, then unties. `none` is the baseline: the stock update.
      `equal_init` starts as `swe` does but ties nothing.
      `reparameterize` gives each layer (mean gradient + own gradient) / 2 for
      the whole run (appendix B.1 of the paper).
    unit_size: The number of consecutive layers that form a unit.
    untie_fraction: The fraction of `trainer.train_steps` that is shared.
    untie_step: The number of shared steps; wins over the fraction when set.
    rule: When to untie. `fixed` is the paper's: after `untie_step`. `staged`
      goes through `stages` before that. `adaptive` unties when most cosines
      between adjacent units' gradients are below `rho`, `patience` times in a
      row, and has no untie step.
    stages: The stages of `staged`, in order.
    check_interval: The steps between two measurements of the cosines.
    rho: The cosine below which two units disagree.
    patience: How many times in a row they must disagree.
    loops: How often the unit is applied while shared; empty for all units, as
      in Algorithm 1. Fewer make a shared step cheaper.
    recipe: The name of a set of the fields above (`RECIPES`) that was tried
      and measured; the fields themselves must then be left alone.
    bindings: Gin's bindings of the method that no field above expresses; filled
      in automatically.
  """

  mode: str = "swe"
  unit_size: int = 1
  untie_fraction: float = untie_step_lib.PAPERS_FRACTION
  untie_step: int | None = None
  rule: str = "fixed"
  stages: list[StageConfig] = dataclasses.field(default_factory=list)
  check_interval: int = 1000
  rho: float = 0.5
  patience: int = 3
  loops: list[LoopsConfig] = dataclasses.field(default_factory=list)
  recipe: str = ""
  bindings: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class GrowthConfig(base_config.Config):
  """How the model grows while it is trained.

  Attributes:
    method: `none`, `net2net` or `stacking`, which need
      `task.sharing.mode=none`.
    fractions: The fractions of `trainer.train_steps` after which it grows: one
      for `net2net` (0.1 if unset), two for `stacking` (0.125 and 0.3).
    noise: For `net2net`, the deviation of the noise that is added to widened
      weights so that the copies of a unit diverge, relative to that of each
      weight. With 0 only dropout separates the copies.
  """

  method: str = "none"
  fractions: list[float] | None = None
  noise: float = 0.01


# What `fields.check` holds an experiment against. `check_interval`, `rho` and
# `patience` matter to some rules only, which check them.
LIMITS = {
  "task.growth.noise": fields.Limit(least=0),
}


def _few_loops(num_layers: int) -> Mapping[str, Any]:
  """A unit of a quarter of the layers, applied once, for 30% of the steps.

  In the paper's terms, these are the updates of progressive stacking from a
  quarter of the layers to all (`stacking.py`).
  """
  if num_layers % 4:
    raise errors.UsageError(
      f"task.sharing.recipe=few_loops has 4 units, but the model has "
      f"{num_layers} layers; set unit_size, untie_fraction and loops by hand."
    )
  once = [{"loops": 1}]
  return {"unit_size": num_layers // 4, "untie_fraction": 0.3, "loops": once}


# The fields of each recipe as a function of the number of layers.
RECIPES: dict[str, Callable[[int], Mapping[str, Any]]] = {
  "few_loops": _few_loops,
  # One layer, applied once, for half of the steps; then all are untied.
  "one_loop": lambda num_layers: {
    "unit_size": 1,
    "untie_fraction": 0.5,
    "loops": [{"loops": 1}],
  },
}


def apply_recipe(sharing: SharingConfig, num_layers: int | None) -> None:
  """Sets the fields of `sharing.recipe`, if there is one, in place."""
  recipe = sharing.recipe
  if not recipe:
    return
  if recipe not in RECIPES:
    raise errors.UsageError(
      f"task.sharing.recipe ({recipe!r}) must be one of {', '.join(RECIPES)}; "
      + errors.nearest(recipe, RECIPES, "see docs/methods.md.")
    )
  if num_layers is None:
    raise errors.UsageError(
      f"task.sharing.recipe={recipe}: the number of layers is not known; set "
      "unit_size, untie_fraction and loops by hand."
    )
  made = SharingConfig()
  made.override(RECIPES[recipe](num_layers))
  now, wanted, plain = (
    each.as_dict() for each in (sharing, made, SharingConfig())
  )
  # A step would win over the fraction that the recipe sets.
  for name in (*RECIPES[recipe](num_layers), "untie_step"):
    if now[name] not in (plain[name], wanted[name]):
      raise errors.UsageError(
        f"task.sharing.recipe={recipe} sets {name} to {wanted[name]}, but it "
        f"was set to {now[name]}; set only one of them."
      )
  sharing.override(RECIPES[recipe](num_layers))
