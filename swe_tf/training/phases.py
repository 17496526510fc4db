"""The phases of a method, as the trainer sees them.

Whatever changes the program of a step in the middle of a run begins a phase:
weights that are untied, units that are split, a model that grows
(`swe_tf.methods`). The trainer compiles one loop for each phase and asks
between loops; the rest is the method's own.
"""

import abc

import tf_keras

from swe_tf.sharing import adaptive
from swe_tf.sharing import diagnostics
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule


class Phases(abc.ABC):
  """Which phase a run is in, and when the next one begins.

  The truth is in variables of the checkpoint, so that a resumed run is in the
  phase in which it was saved. All methods run eagerly on the host, on every
  worker alike.
  """

  @property
  @abc.abstractmethod
  def name(self) -> str:
    """Names the phase. Steps of phases with different names differ."""

  @abc.abstractmethod
  def next_decision(self, step: int) -> int | None:
    """Returns the first step after `step` at which to ask, or None."""

  @abc.abstractmethod
  def change_if_due(self, step: int) -> str | None:
    """Begins the next phase after update `step`, if it is time.

    Args:
      step: The number of updates made; any, not only those of `next_decision`.

    Returns:
      What was done, in words; None if nothing was.
    """

  def begin(self) -> None:  # noqa: B027 (most methods have nothing to do)
    """Is called once, before the first update of a run that is not resumed."""

  @property
  def model(self) -> tf_keras.Model | None:
    """The model that is trained now; None if it always is the task's own."""
    return None

  @property
  def state(self) -> dict[str, object]:
    """What a checkpoint has to hold besides the model and the optimizer."""
    return {}

  def logs(self) -> dict[str, float]:
    """Returns the scalars that show the method at work."""
    return {}


class SharingPhases(Phases):
  """Shared, perhaps in smaller groups, then unshared."""

  def __init__(
    self,
    optimizer: optimizer_lib.SharedWeightsOptimizer,
    rule: schedule.UntieRule,
  ):
    self.optimizer = optimizer
    self.rule = rule

  @property
  def name(self) -> str:
    if self.optimizer.phase == optimizer_lib.UNSHARED:
      return optimizer_lib.UNSHARED
    return f"{optimizer_lib.SHARED} {self.optimizer.plan}"

  def begin(self) -> None:
    self.optimizer.begin()

  def next_decision(self, step: int) -> int | None:
    if self.optimizer.phase == optimizer_lib.UNSHARED:
      return None
    return self.rule.next_decision(step)

  def change_if_due(self, step: int) -> str | None:
    if self.optimizer.phase == optimizer_lib.UNSHARED:
      return None
    before = self.optimizer.plan
    groups = self.rule.regroup(
      step, self.optimizer.gradient_cosines, before.groups
    )
    if groups == before.groups:
      return None
    self.optimizer.split(groups)
    if self.optimizer.phase == optimizer_lib.UNSHARED:
      return f"untied {before} after step {step}"
    return f"split {before} into {self.optimizer.plan} after step {step}"

  @property
  def state(self) -> dict[str, object]:
    keeps = isinstance(self.rule, adaptive.RememberingRule)
    return {"untie_rule": self.rule} if keeps else {}

  def logs(self) -> dict[str, float]:
    """See base class."""
    shared = self.optimizer.phase == optimizer_lib.SHARED
    tau = self.optimizer.untied_at
    if tau is None:
      tau = self.optimizer.untie_step
    logs = {"sharing/phase": float(not shared)}
    if tau is not None:
      logs["sharing/untie_step"] = float(tau)
    if shared:
      logs["sharing/groups"] = float(len(set(self.optimizer.plan.groups)))
      logs["sharing/gradient_cosine"] = self.optimizer.gradient_cosine
    else:
      logs["sharing/distance_from_mean"] = diagnostics.distance_from_mean(
        self.optimizer.plan
      )
    return logs
