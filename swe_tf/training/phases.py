"""The phases of a method, as the trainer sees them.

Whatever changes the program of a step in the middle of a run begins a phase:
untying the weights, splitting units, growing the model. The trainer compiles
one loop for each phase and asks between loops whether to change it; the rest is
up to the method (`swe_tf.methods`).
"""

import abc
from collections.abc import Mapping
import dataclasses
from typing import Any

import tf_keras

from official.core import config_definitions as cfg
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule
from swe_tf.training import layer_curves


class Phases(abc.ABC):
  """Which phase a run is in, and when the next one begins.

  The phase is kept in variables of the checkpoint, so that a resumed run is in
  the phase in which it was saved. All methods run eagerly on the host, on every
  worker alike.
  """

  @property
  @abc.abstractmethod
  def name(self) -> str:
    """The name of the phase. Phases with different names differ in a step."""

  @abc.abstractmethod
  def next_decision(self, step: int) -> int | None:
    """Returns the first step after `step` at which to decide, or None."""

  @abc.abstractmethod
  def change_if_due(self, step: int) -> str | None:
    """Begins the next phase after update `step`, if it is due.

    Args:
      step: The number of updates made; not only those of `next_decision`.

    Returns:
      A description of what was done; None if nothing was.
    """

  def begin(self) -> None:  # noqa: B027 (most methods have nothing to do)
    """Called once, before the first update of a run that is not resumed."""

  def on_rollback(self) -> None:  # noqa: B027 (most read their variables)
    """Called after an earlier checkpoint was restored within a run.

    Raises:
      Failed: If only a restarted run can continue from there.
    """

  @property
  def is_shared(self) -> bool:
    """Whether layers are currently tied."""
    return False

  @property
  def model(self) -> tf_keras.Model | None:
    """The current model; None if it is always the task's own."""
    return None

  @property
  def state(self) -> dict[str, Any]:
    """State to checkpoint besides the model and the optimizer."""
    return {}

  def logs(self) -> Mapping[str, Any]:
    """Returns the scalars that show the method at work."""
    return {}

  def eval_logs(self) -> Mapping[str, Any]:
    """Returns scalars that say which model was evaluated."""
    return {}


class OnePhase(Phases):
  """The phases of a method whose step is the same program for the whole run."""

  def __init__(self, plan: plan_lib.SharingPlan | None, begin=None):
    """Logs the distance of the plan's layers, if any; see `Phases.begin`."""
    self._plan = plan
    self._begin = begin

  @property
  def name(self) -> str:
    return "unshared"

  def begin(self) -> None:
    if self._begin is not None:
      self._begin()

  def next_decision(self, step: int) -> int | None:
    return None

  def change_if_due(self, step: int) -> str | None:
    return None

  def logs(self) -> Mapping[str, Any]:
    if self._plan is None:
      return {}
    distance = layer_curves.distance_from_mean(self._plan)
    return {"sharing/distance_from_mean": distance}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ingredients:
  """What a method is applied to; `untie_rule` wins over the config's."""

  task: Any
  model: tf_keras.Model
  optimizer: Any
  config: cfg.ExperimentConfig
  untie_rule: schedule.UntieRule | None = None


@dataclasses.dataclass(frozen=True)
class Training:
  """What a method returns: an optimizer without EMA and loss scaling.

  `described` has the parts of `task` that are not in the config of the run.
  """

  optimizer: Any
  phases: Phases
  described: Mapping[str, Any] = dataclasses.field(default_factory=dict)
