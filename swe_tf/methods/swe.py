"""SWE: share the weights of all blocks, then untie them and train on.

What: Algorithm 1 of the paper. While shared, the gradients of a tie are
averaged and all its layers get the same update; at the untie step the optimizer
slots are copied, and each layer trains by itself.

Use: `task.sharing.mode=swe`, `untie_fraction` (or `untie_step`) and
`unit_size`; `rule` for another rule than a fixed step.

Cost: as many FLOPs as the baseline, a smaller all-reduce and fewer slots while
shared, one more compile at the switch: docs/performance.md.

Where it does not help: at small width with a tuned learning rate and few steps
the baseline ends ahead: docs/studies.md.
"""

from collections.abc import Mapping
from typing import Any

from swe_tf.methods import plans
from swe_tf.methods import rules
from swe_tf.sharing import diagnostics
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import schedule
from swe_tf.training import phases


class SharingPhases(phases.Phases):
  """Shared, perhaps in smaller groups, then unshared."""

  def __init__(
    self,
    optimizer: optimizer_lib.SharedWeightsOptimizer,
    rule: schedule.UntieRule,
  ):
    self.optimizer = optimizer
    self.rule = rule

  @property
  def is_shared(self) -> bool:
    return self.optimizer.phase == optimizer_lib.SHARED

  @property
  def name(self) -> str:
    if not self.is_shared:
      return optimizer_lib.UNSHARED
    return f"{optimizer_lib.SHARED} {self.optimizer.plan}"

  def begin(self) -> None:
    self.optimizer.begin()

  def next_decision(self, step: int) -> int | None:
    return self.rule.next_decision(step) if self.is_shared else None

  def change_if_due(self, step: int) -> str | None:
    if not self.is_shared:
      return None
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
  optimizer = optimizer_lib.SharedWeightsOptimizer(
    ingredients.optimizer,
    plan,
    untie_step=getattr(rule, "untie_step", None),
    cosine_interval=rule.cosine_interval or trainer.summary_interval,
  )
  return phases.Training(optimizer, SharingPhases(optimizer, rule))
