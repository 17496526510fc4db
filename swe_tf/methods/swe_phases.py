"""The phases of SWE: shared, possibly in ever smaller groups, then unshared."""

from collections.abc import Mapping
from typing import Any

import tf_keras

from swe_tf.methods import untied_as as untied_as_lib
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.sharing import untie_step as untie_step_lib
from swe_tf.training import layer_curves
from swe_tf.training import phases


class SharingPhases(phases.Phases):
  """Shared, possibly in ever smaller groups, then unshared."""

  def __init__(
    self,
    optimizer: optimizer_lib.SharedWeightsOptimizer,
    rule: schedule.UntieRule,
    loops: untie_step_lib.LoopSchedule,
    views: Mapping[int, tf_keras.Model],
    untied_as: tuple[str, int] = (untied_as_lib.COPIES, 0),
  ):
    """Initializes the phases.

    Args:
      optimizer: The optimizer.
      rule: When to untie.
      loops: How often the unit is applied while shared.
      views: By number of loops, the model that applies the unit that often;
        none for the whole stack.
      untied_as: What the layers are right after untying, and the seed of it.
    """
    self.optimizer = optimizer
    self.rule = rule
    self._loops = loops
    self._views = views
    self._untied_as = untied_as
    self._name_before: str | None = None

  @property
  def is_shared(self) -> bool:
    return self.optimizer.phase == optimizer_lib.SHARED

  @property
  def name(self) -> str:
    if not self.is_shared:
      return optimizer_lib.UNSHARED
    name = f"{optimizer_lib.SHARED} {self.optimizer.plan}"
    loops = self.optimizer.loops
    return f"{name}, {loops} loops" if loops in self._views else name

  @property
  def model(self) -> tf_keras.Model | None:
    return self._views.get(self.optimizer.loops)

  def begin(self) -> None:
    self.optimizer.begin()

  def next_decision(self, step: int) -> int | None:
    if not self.is_shared:
      return None
    steps = self.rule.next_decision(step), self._loops.next_change(step)
    return min((s for s in steps if s is not None), default=None)

  def change_if_due(self, step: int) -> str | None:
    done = self._regroup_if_due(step) if self.is_shared else None
    before, self._name_before = self._name_before, self.name
    if done or before in (None, self.name):
      return done
    return f"{before} became {self.name} after step {step}"

  def _regroup_if_due(self, step: int) -> str | None:
    before = self.optimizer.plan
    groups = self.rule.regroup(
      step, self.optimizer.gradient_cosines, before.groups
    )
    if groups == before.groups:
      return None
    self.optimizer.split(groups)
    if not self.is_shared:
      untied_as_lib.break_symmetry(self.optimizer.plan, *self._untied_as)
      return f"untied {before} after step {step}"
    return f"split {before} into {self.optimizer.plan} after step {step}"

  @property
  def state(self) -> dict[str, Any]:
    return self.rule.state

  def logs(self) -> Mapping[str, Any]:
    """See base class."""
    tau = self.optimizer.untied_at
    if tau is None:
      tau = self.optimizer.untie_step
    logs: dict[str, Any] = {"sharing/phase": float(not self.is_shared)}
    if tau is not None:
      logs["sharing/untie_step"] = float(tau)
    if self._views:
      logs["sharing/loops"] = float(self.optimizer.loops)
    if self.is_shared:
      logs["sharing/groups"] = float(len(set(self.optimizer.plan.groups)))
      logs["sharing/gradient_cosine"] = self.optimizer.gradient_cosine
    else:
      logs["sharing/distance_from_mean"] = layer_curves.distance_from_mean(
        self.optimizer.plan
      )
    return logs

  def eval_logs(self) -> Mapping[str, Any]:
    """See base class; fewer loops compute another function than the stack."""
    if not self._views:
      return {}
    return {"sharing/loops": float(self.optimizer.loops)}
