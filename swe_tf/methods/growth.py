"""Methods that train a smaller model first and let it grow.

`net2net.py` doubles the width, `stacking.py` the depth. This file has what they
have in common: the config, and when a model grows. Weights and optimizer slots
are carried over; the learning rate schedule continues.
"""

import abc
from collections.abc import Sequence
import dataclasses

import tensorflow as tf
import tf_keras

from official.modeling.hyperparams import base_config
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.sharing import slots
from swe_tf.training import phases

_NOT_BEGUN = -1


@dataclasses.dataclass
class GrowthConfig(base_config.Config):
  """How the model grows while it is trained.

  Attributes:
    method: `none`; `net2net` trains a model of half the width and then doubles
      it; `stacking` trains a quarter of the layers, then half, then all. Both
      need `task.sharing.mode=none`.
    fractions: The fractions of `trainer.train_steps` after which it grows: one
      for `net2net` (0.1 if unset), two for `stacking` (0.125 and 0.3).
    noise: For `net2net`, the standard deviation of the normal noise that is
      added to widened weights so that the copies of a unit diverge, relative to
      that of each weight. 0 adds none; then only dropout separates the copies.
  """

  method: str = catalog.NONE
  fractions: list[float] | None = None
  noise: float = 0.01


class GrowthPhases(phases.Phases):
  """A phase for each size; in the last one the model is the task's own.

  Attributes:
    stage: How often the model has grown; it is in the checkpoint.
  """

  def __init__(self, optimizer, steps: Sequence[int], sizes: Sequence[int]):
    """Initializes the phases.

    Args:
      optimizer: The bare optimizer of the task; it updates all the models.
      steps: The updates after which the model grows, in order.
      sizes: The size in each phase, one more than `steps`.
    """
    if not slots.is_legacy(optimizer):
      raise errors.UsageError(
        f"{type(optimizer).__name__} creates the slots of all variables at "
        "once, so it cannot be used with a model that grows (task.growth). Use "
        "a legacy optimizer: adamw, lamb, adam or sgd."
      )
    self._optimizer = optimizer
    self._steps = tuple(steps)
    self._sizes = tuple(sizes)
    # A module, so that a subclass can keep more in the checkpoint for a while.
    self._saved = tf.Module()
    self._saved.stage = tf.Variable(
      _NOT_BEGUN,
      dtype=tf.int64,
      trainable=False,
      aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
      name="growth_stage",
    )

  @property
  @abc.abstractmethod
  def name(self) -> str:
    """See base class."""

  @property
  @abc.abstractmethod
  def model(self) -> tf_keras.Model | None:
    """See base class."""

  @abc.abstractmethod
  def grow(self, stage: int) -> str:
    """Carries weights and slots over to the next stage; returns a message."""

  @property
  def _saved_stage(self) -> int:
    with tf.init_scope():  # A step asks for its model while it is traced.
      return int(self._saved.stage.numpy())

  @property
  def stage(self) -> int:
    return max(0, self._saved_stage)

  @property
  def size(self) -> int:
    return self._sizes[self.stage]

  def begin(self) -> None:
    self._saved.stage.assign(0)

  def next_decision(self, step: int) -> int | None:
    return next((s for s in self._steps[self.stage :] if s > step), None)

  def change_if_due(self, step: int) -> str | None:
    if self._saved_stage == _NOT_BEGUN:
      raise errors.UsageError(
        "The checkpoint in model_dir is from a run without task.growth, so it "
        "has no small model. Choose another model_dir."
      )
    done = []
    while self._steps[self.stage :] and self._steps[self.stage] <= step:
      done.append(self.grow(self.stage))
      self._saved.stage.assign_add(1)
    return f"{', '.join(done)} after step {step}" if done else None

  @property
  def state(self) -> dict[str, object]:
    return {"growth": self._saved}

  def logs(self) -> dict[str, float]:
    return {"growth/stage": float(self.stage), "growth/size": float(self.size)}
