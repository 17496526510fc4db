"""The phases of a method, as the trainer sees them.

Whatever changes the program of a step in the middle of a run begins a phase:
weights that are untied, units that are split, a model that grows. The trainer
compiles one loop for each phase and asks between loops; the rest is the
method's own (`swe_tf.methods`).
"""

import abc
from collections.abc import Mapping
import dataclasses
from typing import Any, Protocol, runtime_checkable

import tf_keras

from official.core import config_definitions as cfg
from swe_tf.sharing import diagnostics
from swe_tf.sharing import plan as plan_lib
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

  def went_back(self) -> None:  # noqa: B027 (most read their variables)
    """Is called after an earlier checkpoint was restored within a run.

    Raises:
      Failed: If the run cannot go on from there, but one that starts can.
    """

  @property
  def is_shared(self) -> bool:
    """Whether layers are tied now."""
    return False

  @property
  def model(self) -> tf_keras.Model | None:
    """The model that is trained now; None if it always is the task's own."""
    return None

  @property
  def state(self) -> dict[str, Any]:
    """What a checkpoint has to hold besides the model and the optimizer."""
    return {}

  def logs(self) -> Mapping[str, Any]:
    """Returns the scalars that show the method at work."""
    return {}

  def eval_logs(self) -> Mapping[str, Any]:
    """Returns what an evaluation has to say about the model it was of."""
    return {}


class OnePhase(Phases):
  """The phases of a method whose step is the same program for the whole run."""

  def __init__(self, plan: plan_lib.SharingPlan | None, begin=None):
    """Initializes the phase.

    Args:
      plan: The layers whose distance from each other is logged; None for a
        model without repeated layers.
      begin: Is called before the first update of a run that is not resumed.
    """
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
    distance = diagnostics.distance_from_mean(self._plan)
    return {"sharing/distance_from_mean": distance}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ingredients:
  """What a method is applied to.

  Attributes:
    task: The task.
    model: The model that the task built.
    optimizer: The bare optimizer that the task made.
    config: The experiment.
    untie_rule: When to untie, in place of the config's rule.
  """

  task: Any
  model: tf_keras.Model
  optimizer: Any
  config: cfg.ExperimentConfig
  untie_rule: schedule.UntieRule | None = None


@dataclasses.dataclass(frozen=True)
class Training:
  """What comes out.

  Attributes:
    optimizer: What makes the updates, without EMA and loss scaling.
    phases: When which step is run.
  """

  optimizer: Any
  phases: Phases


@runtime_checkable
class TaskWithMethod(Protocol):
  """A task whose config chooses a method."""

  def apply_method(self, ingredients: Ingredients) -> Training:
    """Returns how the model is trained."""
