"""What the config of a run says about its method, in steps and layers.

The one place where fractions and lists of stages become numbers. Imports no
TensorFlow.
"""

import dataclasses
import functools
from typing import Any

from swe_tf.sharing import loops as loops_lib
from swe_tf.sharing import untie_step as untie_step_lib

# Fields of `task.sharing` that, when changed, depart from Algorithm 1 as
# printed; with their defaults.
KNOBS = {
  "own_init": False,
  "share": "all",
  "own_layers": 0,
  "shared_learning_rate_scale": 1.0,
  "untie_warmup_steps": 0,
  "second_moments": "copy",
  "untied_as": "copies",
}


@dataclasses.dataclass(frozen=True)
class Resolved:
  """The method of a run; `catalog.resolve` and `catalog.read` make it.

  Attributes:
    sharing: `task.sharing`, a `SharingConfig`.
    growth: `task.growth`, a `GrowthConfig`.
    train_steps: The number of steps in the run.
    num_layers: The number of layers in the model; None if unknown.
    untie_step: Tau of Algorithm 1; None if the method never unties, or only its
      rule knows when.
  """

  sharing: Any
  growth: Any
  train_steps: int
  num_layers: int | None
  untie_step: int | None

  @property
  def tied_layers(self) -> int | None:
    """How many layers are in units."""
    if self.num_layers is None:
      return None
    return self.num_layers - 2 * self.sharing.own_layers

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
  def loops(self) -> loops_lib.LoopSchedule | None:
    """How often the unit is applied while shared; None for always fully."""
    if not self.sharing.loops:
      return None
    assert self.tied_layers is not None and self.untie_step is not None
    return loops_lib.resolve(
      [stage.as_dict() for stage in self.sharing.loops],
      num_units=self.tied_layers // self.sharing.unit_size,
      untie_step=self.untie_step,
      train_steps=self.train_steps,
    )

  @property
  def is_never_shared(self) -> bool:
    """Whether no two layers would ever be tied."""
    return self.untie_step == 0 or self.sharing.unit_size == self.tied_layers

  @property
  def knobs(self) -> dict[str, Any]:
    """The fields that depart from Algorithm 1, except `loops`."""
    values = {name: getattr(self.sharing, name) for name in KNOBS}
    return {name: v for name, v in values.items() if v != KNOBS[name]}
