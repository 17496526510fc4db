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
from swe_tf.modeling import sizes as sizes_lib
from swe_tf.sharing import slots
from swe_tf.training import phases as phases_lib

_NOT_BEGUN = -1


class GrowthPhases(phases_lib.Phases):
  """A phase for each size; in the last one the model is the task's own."""

  def __init__(self, optimizer, steps: Sequence[int], sizes: Sequence[int]):
    """Initializes the phases: it grows after `steps`, through `sizes`."""
    if not slots.is_legacy(optimizer):
      raise errors.UsageError(
        f"{type(optimizer).__name__} makes the slots of all variables at once; "
        "a model that grows (task.growth) needs a legacy optimizer: adamw, "
        "lamb, adam or sgd."
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
    """How often the model has grown; it is in the checkpoint."""
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


def register(
  name: str,
  build: Callable[[phases_lib.Ingredients, list[int]], phases_lib.Phases],
  *,
  halves: Sequence[str],
  fractions: Sequence[float],
) -> None:
  """Registers a `task.growth.method` that doubles the parameters `halves`.

  It does so after each of `task.growth.fractions`, by default `fractions`;
  `build` makes the phases of a run, given these updates.
  """

  def steps_of(resolved: catalog.Resolved) -> list[int]:
    given = resolved.growth.fractions or fractions
    return [round(fraction * resolved.train_steps) for fraction in given]

  def train(ingredients: phases_lib.Ingredients) -> phases_lib.Training:
    steps = steps_of(catalog.resolve(ingredients.config))
    return phases_lib.Training(ingredients.optimizer, build(ingredients, steps))

  def phases(
    resolved: catalog.Resolved, size: sizes_lib.Size
  ) -> list[catalog.Phase]:
    ends, found, begin = steps_of(resolved), [], 0
    for stage, end in enumerate([*ends, resolved.train_steps]):
      small = dataclasses.replace(
        size,
        **{
          field: value // 2 ** (len(ends) - stage)
          for field, value in dataclasses.asdict(size).items()
          if field in halves
        },
      )
      label = f"{small.num_layers}x{small.hidden_size}"
      found.append(catalog.Phase(label, end - begin, small, small.num_layers))
      begin = end
    return [phase for phase in found if phase.steps]

  def check(config: cfg.ExperimentConfig, resolved: catalog.Resolved) -> None:
    mode, ema = resolved.sharing.mode, config.trainer.optimizer_config.ema
    given = list(resolved.growth.fractions or fractions)
    encoder = registry.encoder_of(config.task.as_dict())
    why, is_ascending = "", sorted([0, *given, 1]) == [0, *given, 1]
    if mode != catalog.NONE:
      why = (
        f"but task.sharing.mode is {mode!r}: a model that grows shares no "
        "weights; set one of them to 'none'."
      )
    elif len(given) != len(fractions) or not is_ascending:
      why = (
        f"but task.growth.fractions ({given}) must be {len(fractions)} "
        "number(s) between 0.0 and 1.0, in ascending order."
      )
    elif ema is not None:
      why = (
        "but trainer.optimizer_config.ema is set: models of different sizes "
        "cannot be averaged; unset one of them."
      )
    elif encoder is None or not encoder.is_bert:
      why = (
        "which is for BERT, but the encoder is another one; set "
        "task.model.encoder.type to 'any' or 'bert'."
      )
    if why or encoder is None:
      raise errors.UsageError(f"task.growth.method={name}, {why}")
    for field in halves:
      value, divisor = encoder.params.get(field) or 0, 2 ** len(fractions)
      if value % divisor:
        raise errors.UsageError(
          f"{field} ({value}) must be divisible by {divisor} for {name!r}, "
          "which trains a smaller model first."
        )

  catalog.register(
    catalog.Method(
      name=name,
      growth=name,
      build=train,
      ignores=frozenset({"tau", "units"}),
      phases=phases,
      check=check,
    )
  )
