"""SWE: share the weights of all blocks, then untie them and train on.

What: Algorithm 1 of the paper. While shared, the gradients of a tie are
averaged and all its layers get the same update; at the untie step the optimizer
slots are copied, and each layer trains by itself.

Use: `task.sharing.mode=swe`, `untie_fraction` (or `untie_step`) and
`unit_size`; `rule` for another rule than a fixed step. With `loops` the unit is
applied fewer times while it is shared; the whole stack is untied from it.

Cost: as many FLOPs as the baseline, fewer with `loops` (`swe doctor cost`); a
smaller all-reduce and fewer slots while shared, one more compile at each
switch: docs/performance.md.

Where it does not help: at small width with a tuned learning rate and few steps
the baseline ends ahead: docs/studies.md.
"""

from collections.abc import Mapping
from typing import Any

import tf_keras

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.methods import rules
from swe_tf.methods import views as views_lib
from swe_tf.modeling import registry
from swe_tf.sharing import diagnostics
from swe_tf.sharing import loops as loops_lib
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule
from swe_tf.training import phases


class SharingPhases(phases.Phases):
  """Shared, perhaps in smaller groups, then unshared."""

  def __init__(
    self,
    optimizer: optimizer_lib.SharedWeightsOptimizer,
    rule: schedule.UntieRule,
    loops: loops_lib.LoopSchedule,
    views: Mapping[int, tf_keras.Model],
  ):
    """Initializes the phases.

    Args:
      optimizer: The optimizer.
      rule: When to untie.
      loops: How often the unit is applied while shared.
      views: The model that applies it so often, where that is not all units.
    """
    self.optimizer = optimizer
    self.rule = rule
    self._loops = loops
    self._views = views
    self._compiled_loops: int | None = None

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
    if not self.is_shared:
      return None
    return self._regroup_if_due(step) or self._loop_if_due(step)

  def _loop_if_due(self, step: int) -> str | None:
    """Notes another number of loops; weights and slots are as they must be."""
    before, now = self._compiled_loops, self._loops.loops_at(step)
    self._compiled_loops = now
    if before in (None, now):
      return None
    return f"{before} loops became {now} after step {step}"

  def _regroup_if_due(self, step: int) -> str | None:
    before = self.optimizer.plan
    groups = self.rule.regroup(
      step, self.optimizer.gradient_cosines, before.groups
    )
    if groups == before.groups:
      return None
    self.optimizer.split(groups)
    if not self.is_shared:
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
      logs["sharing/distance_from_mean"] = diagnostics.distance_from_mean(
        self.optimizer.plan
      )
    return logs


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  config = ingredients.config
  sharing, trainer = config.task.sharing, config.trainer
  rule = ingredients.untie_rule or rules.make_rule(sharing, trainer.train_steps)
  plan = plans.plan_of(ingredients.model, sharing)
  loops = _loop_schedule(config, plan.num_units)
  optimizer = optimizer_lib.SharedWeightsOptimizer(
    ingredients.optimizer,
    plan,
    untie_step=getattr(rule, "untie_step", None),
    cosine_interval=rule.cosine_interval or trainer.summary_interval,
    loops=loops,
  )
  views = {}
  if sharing.loops:
    # A new optimizer keeps its slots in the order in which it sees variables.
    optimizer.build(ingredients.model.trainable_variables)
    build_encoder = views_lib.encoder_builder(ingredients.task)
    views = {
      count: views_lib.first_blocks(
        ingredients.model, count * plan.unit_size, build_encoder
      )
      for _, count in loops.stages
      if count < plan.num_units
    }
  return phases.Training(
    optimizer, SharingPhases(optimizer, rule, loops, views)
  )


def _loop_schedule(
  config: cfg.ExperimentConfig, num_units: int
) -> loops_lib.LoopSchedule:
  sharing, train_steps = config.task.sharing, config.trainer.train_steps
  if not sharing.loops:
    return loops_lib.LoopSchedule(num_units)
  return loops_lib.resolve(
    [stage.as_dict() for stage in sharing.loops],
    num_units=num_units,
    untie_step=rules.tau_of(sharing, train_steps),
    train_steps=train_steps,
  )


def check(config: cfg.ExperimentConfig) -> None:
  """Raises unless the unit can be applied as `task.sharing.loops` says."""
  sharing = config.task.sharing
  if not sharing.loops:
    return
  if sharing.rule != catalog.FIXED:
    raise errors.UsageError(
      f"task.sharing.loops is set, but task.sharing.rule is {sharing.rule!r}: "
      f"loops go with {catalog.FIXED!r} only."
    )
  encoder = registry.encoder_of(config.task.as_dict())
  if encoder is None or not isinstance(encoder.family, registry.Bert):
    raise errors.UsageError(
      "task.sharing.loops is for BERT, but the encoder is another one."
    )
  assert encoder.num_layers is not None
  plan_lib.check_unit_size(sharing.unit_size, encoder.num_layers)
  _loop_schedule(config, encoder.num_layers // sharing.unit_size)
