"""SWE: share the weights of all blocks, then untie them and train on.

What: Algorithm 1 of the paper. While shared, the gradients of a tie are
averaged and all its layers get the same update; at the untie step the optimizer
slots are copied, and from then on each layer trains on its own.

Use: `task.sharing.mode=swe`, `untie_fraction` (or `untie_step`) and
`unit_size`; `rule` for a rule other than a fixed step. With `loops` the unit is
applied fewer times while it is shared; the whole stack is untied from it.

The cards: docs/cards/swe.md; always_tied.md for the ALBERT-like special case
that stays shared to the end.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tf_keras

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
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
  ):
    """Initializes the phases.

    `views` are the models that apply the unit less often, by number of loops.
    """
    self.optimizer = optimizer
    self.rule = rule
    self._loops = loops
    self._views = views
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
    done, before = None, self.optimizer.plan
    groups = before.groups
    if self.is_shared:
      groups = self.rule.regroup(step, self.optimizer.gradient_cosines, groups)
    if groups != before.groups:
      self.optimizer.split(groups)
      done = f"split {before} into {self.optimizer.plan} after step {step}"
      if not self.is_shared:
        done = f"untied {before} after step {step}"
    was, self._name_before = self._name_before, self.name
    if done or was in (None, self.name):
      return done
    return f"{was} became {self.name} after step {step}"

  @property
  def state(self) -> dict[str, Any]:
    return self.rule.state

  def logs(self) -> Mapping[str, Any]:
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
      logs["sharing/gradient_cosine"] = self.optimizer.gradient_cosines.mean
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


def build(ingredients: phases.Ingredients) -> phases.Training:
  config = ingredients.config
  sharing, trainer = config.task.sharing, config.trainer
  resolved = catalog.resolve(config)
  rule = ingredients.untie_rule or catalog.make_rule(resolved)
  plan = plans.plan_of(ingredients.model, sharing)
  loops = resolved.loops or untie_step_lib.LoopSchedule(plan.num_units)
  optimizer = optimizer_lib.SharedWeightsOptimizer(
    ingredients.optimizer,
    plan,
    untie_step=getattr(rule, "untie_step", None),
    cosine_interval=rule.cosine_interval or trainer.summary_interval,
    cosines_decide=rule.reads_cosines,
    loops=loops,
  )
  views = {}
  if sharing.loops:
    # Keras's new optimizers order their slots as they first see the variables.
    optimizer.build(ingredients.model.trainable_variables)
    build_encoder = plans.encoder_builder(ingredients.task)
    views = {
      count: plans.view_of(
        ingredients.model, list(range(count * plan.unit_size)), build_encoder
      )
      for _, count in loops.stages
      if count < plan.num_units
    }
  return phases.Training(
    optimizer, SharingPhases(optimizer, rule, loops, views)
  )


def phases_of(
  resolved: catalog.Resolved, size: sizes.Size
) -> list[catalog.Phase]:
  """Returns the phases of a run that unties at tau, for the cost model."""
  tau, sharing = resolved.untie_step, resolved.sharing
  if tau is None:
    raise errors.UsageError(
      f"task.sharing.rule is {sharing.rule!r}, so only the run knows when it "
      "unties. For an estimate, set task.sharing.rule=fixed and untie_fraction."
    )
  shared, begin, unit = [], 0, sharing.unit_size
  if resolved.loops is not None:
    stages = *resolved.loops.stages, (tau, resolved.loops.num_units)
    for end, loops in stages:
      applied = dataclasses.replace(size, num_layers=unit * loops)
      name = f"shared, {loops} loops"
      shared.append(catalog.Phase(name, end - begin, applied, unit))
      begin = end
  else:
    units = [(0, unit), *resolved.stages]
    ends = [*(step for step, _ in resolved.stages), tau]
    for (begin, unit), end in zip(units, ends):
      name = f"shared {unit}x{size.num_layers // unit}" if begin else "shared"
      shared.append(catalog.Phase(name, end - begin, size, unit))
  rest = resolved.train_steps - tau
  last = catalog.Phase("unshared", rest, size, size.num_layers)
  return [phase for phase in (*shared, last) if phase.steps]


def check(config: cfg.ExperimentConfig, resolved: catalog.Resolved) -> None:
  sharing = resolved.sharing
  if not sharing.loops:
    return
  if sharing.rule != catalog.FIXED:
    raise errors.UsageError(
      f"task.sharing.loops is set, but task.sharing.rule is {sharing.rule!r}: "
      f"loops need {catalog.FIXED!r}."
    )
  encoder = registry.encoder_of(config.task.as_dict())
  if encoder is None or not encoder.is_bert:
    raise errors.UsageError(
      "task.sharing.loops is for BERT, but the encoder is another one."
    )
  _ = resolved.loops  # Raises if they do not grow, or go beyond tau.


def _special_case(resolved: catalog.Resolved) -> str | None:
  """Sharing nothing at all is the baseline; sharing to the end, ALBERT-like."""
  if resolved.is_never_shared:
    return catalog.BASELINE
  is_fixed = resolved.sharing.rule == catalog.FIXED
  shares_to_the_end = resolved.untie_step == resolved.train_steps
  return catalog.ALBERT if is_fixed and shares_to_the_end else None


_METHOD = catalog.Method(
  name=catalog.SWE,
  mode=catalog.SWE,
  build=build,
  phases=phases_of,
  special_case=_special_case,
  check=check,
)
catalog.register(_METHOD)
catalog.register(
  dataclasses.replace(
    _METHOD,
    name=catalog.ALBERT,
    sharing={"untie_fraction": 1.0, "untie_step": None},
    ignores=frozenset({"tau"}),
  )
)


def _make_fixed(resolved: catalog.Resolved) -> schedule.UntieRule:
  tau = catalog.tau_of(resolved.sharing, resolved.train_steps)
  return schedule.UntieAtStep(tau)


def _make_staged(resolved: catalog.Resolved) -> schedule.UntieRule:
  unit_size = resolved.sharing.unit_size
  for _, larger in resolved.stages:
    if larger % unit_size:
      raise errors.UsageError(
        f"task.sharing.stages has units of {larger} layers, which is not a "
        f"multiple of task.sharing.unit_size ({unit_size})."
      )
  return schedule.UntieInStages(
    catalog.tau_of(resolved.sharing, resolved.train_steps),
    [(step, larger // unit_size) for step, larger in resolved.stages],
  )


def _make_adaptive(resolved: catalog.Resolved) -> schedule.UntieRule:
  sharing = resolved.sharing
  return schedule.UntieByCorrelation(
    sharing.check_interval, sharing.rho, sharing.patience
  )


for _rule in (
  catalog.Rule(name=catalog.FIXED, make=_make_fixed, fixes_tau=True),
  catalog.Rule(name=catalog.STAGED, make=_make_staged, fixes_tau=True),
  catalog.Rule(name="adaptive", make=_make_adaptive),
):
  catalog.register_rule(_rule)
