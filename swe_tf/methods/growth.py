"""Methods that train a smaller model first and let it grow.

`net2net.py` doubles the width, `stacking.py` the depth. This file has what they
have in common: when a model grows, and what it needs. Weights and optimizer
slots are carried over; the learning rate schedule continues.
"""

import abc
from collections.abc import Callable, Sequence
import dataclasses

import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import slots
from swe_tf.training import phases as phases_lib

_NOT_BEGUN = -1


class GrowthPhases(phases_lib.Phases):
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
    if not slots.made_on_demand(optimizer):
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Growing:
  """What tells one method whose model grows from another.

  Attributes:
    name: `task.growth.method`.
    shrink: Returns the size of the model before it has grown that often.
    fractions: The default of `task.growth.fractions`.
    check_size: Raises unless a BERT with these parameters can grow.
  """

  name: str
  shrink: Callable[[sizes.Size, int], sizes.Size]
  fractions: tuple[float, ...]
  check_size: Callable[[registry.Params], None]

  def method(self, build: Callable[..., phases_lib.Training]) -> catalog.Method:
    """Returns the record of the method; see `catalog.Method.build`."""
    return catalog.Method(
      name=self.name,
      growth=self.name,
      build=build,
      ignores=frozenset({"tau", "units"}),
      phases=self.phases,
      check=self.check,
    )

  def steps(self, resolved: catalog.Resolved) -> list[int]:
    """Returns the updates after which the model grows."""
    fractions = resolved.growth.fractions or self.fractions
    return [round(fraction * resolved.train_steps) for fraction in fractions]

  def phases(
    self, resolved: catalog.Resolved, size: sizes.Size
  ) -> list[catalog.Phase]:
    """Returns a phase for each size, for the cost model."""
    ends, found, begin = self.steps(resolved), [], 0
    for stage, end in enumerate([*ends, resolved.train_steps]):
      small = self.shrink(size, len(ends) - stage)
      name = f"{small.num_layers}x{small.hidden_size}"
      found.append(catalog.Phase(name, end - begin, small, small.num_layers))
      begin = end
    return [phase for phase in found if phase.steps]

  def check(
    self, config: cfg.ExperimentConfig, resolved: catalog.Resolved
  ) -> None:
    """Raises unless the model of an experiment can grow as configured."""
    mode = resolved.sharing.mode
    if mode != catalog.NONE:
      raise errors.UsageError(
        f"task.growth.method is {self.name!r} and task.sharing.mode is "
        f"{mode!r}: a model that grows shares no weights. Set "
        "task.sharing.mode=none, or task.growth.method=none."
      )
    fractions = list(resolved.growth.fractions or self.fractions)
    given, count = f"task.growth.fractions ({fractions})", len(self.fractions)
    if len(fractions) != count:
      raise errors.UsageError(
        f"{given} must be {count} for {self.name!r}, one for each time the "
        "model grows."
      )
    if not all(0.0 <= fraction <= 1.0 for fraction in fractions):
      raise errors.UsageError(f"{given} must be between 0.0 and 1.0.")
    if sorted(fractions) != fractions:
      raise errors.UsageError(f"{given} must be in ascending order.")
    if config.trainer.optimizer_config.ema is not None:
      raise errors.UsageError(
        f"task.growth.method is {self.name!r}, but "
        "trainer.optimizer_config.ema is set: models of different sizes cannot "
        "be averaged. Unset one of them."
      )
    encoder = registry.encoder_of(config.task.as_dict())
    if encoder is None or not encoder.is_bert:
      raise errors.UsageError(
        f"task.growth.method={self.name} is for BERT, but the encoder is "
        "another one. Set task.model.encoder.type to 'any' or 'bert'."
      )
    self.check_size(encoder.params)
