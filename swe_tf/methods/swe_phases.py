"""The phases of SWE: shared, possibly in ever smaller groups, then unshared."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
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
    untied_as: tuple[str, int] = ("copies", 0),
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
      break_symmetry(self.optimizer.plan, *self._untied_as)
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


def break_symmetry(plan: plan_lib.SharingPlan, way: str, seed: int) -> None:
  """Makes the units of a plan that was just untied different. Runs eagerly.

  Copies of one layer with equal slots part only as fast as their gradients
  differ. The ways out change all units but the first, by numbers that are a
  function of the seed, the tie and the unit:

  - `noise`: normal noise on the kernels, half as large as their own deviation.
  - `redraw`: a random half of the entries of each kernel is drawn anew, with
    the deviation that the kernel has.
  - `identity`: new layers of their own random kernels, whose output projections
    are 0, so that under Pre-LN they start as the identity. Without the random
    kernels all new layers would have the same gradients and stay equal.

  Slots stay copies: their scale is right, and moments of directions that no
  longer exist fade within tens of steps.
  """
  if way == "copies":
    return
  for index, tie in enumerate(plan.whole_ties):
    for unit, variable in enumerate(tie[1:], start=1):
      random, value = (
        np.random.default_rng([seed, index, unit]),
        variable.numpy(),
      )
      if way == "identity" and "output/" in variable.name:
        new = np.zeros_like(value)
      elif "kernel" not in variable.name:
        continue
      else:
        new = random.standard_normal(value.shape) * value.std()
        if way == "noise":
          new = value + 0.5 * new
        elif way == "redraw":
          new = np.where(random.random(value.shape) >= 0.5, value, new)
      variable.assign(tf.cast(new, variable.dtype))
