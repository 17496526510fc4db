"""SWE: share the weights of all blocks, then untie them and train on.

What: Algorithm 1 of the paper. While shared, the gradients of a tie are
averaged and all its layers get the same update; at the untie step the optimizer
slots are copied, and from then on each layer trains on its own.

Use: `task.sharing.mode=swe`, `untie_fraction` (or `untie_step`) and
`unit_size`; `rule` for a rule other than a fixed step. With `loops` the unit is
applied fewer times while it is shared; the whole stack is untied from it. The
other departures from Algorithm 1 are off unless they are set: `share`,
`own_layers`, `shared_learning_rate_scale`, `untie_warmup_steps`,
`second_moments`.

Cost: as many FLOPs as the baseline, fewer with `loops` (`swe doctor cost`); a
smaller all-reduce and fewer slots while shared, one more compile at each
switch: docs/performance.md.

Where it does not help: at a small width, with a tuned learning rate and few
steps, the baseline ends ahead: docs/studies.md.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tf_keras

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.methods import second_moments as second_moments_lib
from swe_tf.methods import untied_as as untied_as_lib
from swe_tf.methods import views as views_lib
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import diagnostics
from swe_tf.sharing import loops as loops_lib
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule
from swe_tf.sharing import slots
from swe_tf.training import phases


class SharingPhases(phases.Phases):
  """Shared, possibly in ever smaller groups, then unshared."""

  def __init__(
    self,
    optimizer: optimizer_lib.SharedWeightsOptimizer,
    rule: schedule.UntieRule,
    loops: loops_lib.LoopSchedule,
    views: Mapping[int, tf_keras.Model],
    second_moments: second_moments_lib.SecondMoments | None = None,
    untied_as: tuple[str, int] = (untied_as_lib.COPIES, 0),
  ):
    """Initializes the phases.

    Args:
      optimizer: The optimizer.
      rule: When to untie.
      loops: How often the unit is applied while shared.
      views: By number of loops, the model that applies the unit that often;
        none for the whole stack.
      second_moments: Measures each layer's second moments at untying; if None,
        each layer keeps those of the stem.
      untied_as: What the layers are right after untying, and the seed of it.
    """
    self.optimizer = optimizer
    self.rule = rule
    self._loops = loops
    self._views = views
    self._second_moments = second_moments
    self._untied_as = untied_as
    self._name_before: str | None = None

  @property
  def is_shared(self) -> bool:
    return self.optimizer.phase == optimizer_lib.SHARED

  @property
  def name(self) -> str:
    if not self.is_shared:
      warm_up = ", warm-up" if self.optimizer.is_warming_up else ""
      return f"{optimizer_lib.UNSHARED}{warm_up}"
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
      return self.optimizer.warmup_end if self.optimizer.is_warming_up else None
    steps = self.rule.next_decision(step), self._loops.next_change(step)
    return min((s for s in steps if s is not None), default=None)

  def change_if_due(self, step: int) -> str | None:
    done = None
    if self.is_shared:
      if self._loops.loops_at(step) != self._loops.loops_at(step - 1):
        self._copy_own_roles(step)
      done = self._regroup_if_due(step)
    before, self._name_before = self._name_before, self.name
    if done or before in (None, self.name):
      return done
    return f"{before} became {self.name} after step {step}"

  def _copy_own_roles(self, step: int) -> None:
    """Sets the unshared weights of units that are applied from now on.

    A unit's own biases and norms are not trained while it is not applied, so
    they start as copies of an applied unit's, with their slots.
    """
    before, now = self._loops.loops_at(step - 1), self._loops.loops_at(step)
    pairs = [
      (role[unit % before], role[unit])
      for role in self.optimizer.plan.own
      for unit in range(before, now)
    ]
    for source, target in pairs:
      target.assign(source.read_value())
    slots.copy_slots(self.optimizer.inner_optimizer, pairs)

  def _regroup_if_due(self, step: int) -> str | None:
    before = self.optimizer.plan
    groups = self.rule.regroup(
      step, self.optimizer.gradient_cosines, before.groups
    )
    if groups == before.groups:
      return None
    self.optimizer.split(groups)
    if not self.is_shared:
      untied_as_lib.break_symmetry(self.optimizer.plan, *self._untied_as)
      if self._second_moments is not None:
        self._second_moments.measure(step)
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

  def eval_logs(self) -> Mapping[str, Any]:
    """See base class; fewer loops compute another function than the stack."""
    if not self._views:
      return {}
    return {"sharing/loops": float(self.optimizer.loops)}


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  config = ingredients.config
  sharing, trainer = config.task.sharing, config.trainer
  resolved = catalog.resolve(config)
  rule = ingredients.untie_rule or catalog.make_rule(resolved)
  plan = plans.plan_of(ingredients.model, sharing)
  loops = resolved.loops or loops_lib.LoopSchedule(plan.num_units)
  optimizer = optimizer_lib.SharedWeightsOptimizer(
    ingredients.optimizer,
    plan,
    untie_step=getattr(rule, "untie_step", None),
    cosine_interval=rule.cosine_interval or trainer.summary_interval,
    cosines_decide=rule.reads_cosines,
    loops=loops,
    shared_learning_rate_scale=sharing.shared_learning_rate_scale,
    untie_warmup_steps=sharing.untie_warmup_steps,
  )
  own_moments = None
  if sharing.second_moments == "own":
    own_moments = second_moments_lib.SecondMoments(
      ingredients, plan, sharing.second_moment_passes
    )
  views = {}
  if sharing.loops:
    # Keras's new optimizers order their slots as they first see the variables.
    optimizer.build(ingredients.model.trainable_variables)
    views = _views(ingredients, plan, loops)
  return phases.Training(
    optimizer,
    SharingPhases(
      optimizer,
      rule,
      loops,
      views,
      own_moments,
      (sharing.untied_as, getattr(config.task, "seed", 0)),
    ),
  )


def _views(
  ingredients: phases.Ingredients,
  plan: plan_lib.SharingPlan,
  loops: loops_lib.LoopSchedule,
) -> dict[int, tf_keras.Model]:
  """Returns the models that apply fewer units, by number of loops."""
  model, own = ingredients.model, ingredients.config.task.sharing.own_layers
  blocks = range(len(registry.blocks_of(model)))
  build_encoder = views_lib.encoder_builder(ingredients.task)
  return {
    count: views_lib.of_blocks(
      model,
      [*blocks[: own + count * plan.unit_size], *blocks[len(blocks) - own :]],
      build_encoder,
    )
    for _, count in loops.stages
    if count < plan.num_units
  }


def phases_of(
  resolved: catalog.Resolved, size: sizes.Size
) -> list[catalog.Phase]:
  """Returns the phases of a run that unties at tau, for the cost model."""
  tau, sharing = resolved.untie_step, resolved.sharing
  if tau is None:
    raise errors.UsageError(
      f"task.sharing.rule is {sharing.rule!r}, so the untie step is known only "
      "once the run unties. For an estimate, set task.sharing.rule="
      f"{catalog.FIXED} and the untie_fraction that you expect."
    )
  own, unit = 2 * sharing.own_layers, sharing.unit_size
  tied = size.num_layers - own
  shared, begin = [], 0
  if resolved.loops is not None:
    stages = *resolved.loops.stages, (tau, resolved.loops.num_units)
    for end, loops in stages:
      applied = dataclasses.replace(size, num_layers=own + unit * loops)
      shared.append(
        catalog.Phase(
          f"shared, {loops} loops", end - begin, applied, own + unit
        )
      )
      begin = end
  else:
    units = [(0, unit), *resolved.stages]
    ends = [*(step for step, _ in resolved.stages), tau]
    for (begin, unit), end in zip(units, ends):
      name = f"shared {unit}x{tied // unit}" if begin else "shared"
      shared.append(catalog.Phase(name, end - begin, size, own + unit))
  last = catalog.Phase(
    "unshared", resolved.train_steps - tau, size, size.num_layers
  )
  return [phase for phase in (*shared, last) if phase.steps]


def check(config: cfg.ExperimentConfig, resolved: catalog.Resolved) -> None:
  """Raises unless an experiment can share as configured."""
  sharing = resolved.sharing
  if (
    sharing.second_moments == "own"
    and config.runtime.mixed_precision_dtype == "float16"
  ):
    raise errors.UsageError(
      "task.sharing.second_moments=own needs float32 or bfloat16: under "
      "float16, a gradient-only pass would need its own loss scaling."
    )
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


catalog.register(
  catalog.Method(
    name=catalog.SWE,
    mode=catalog.SWE,
    build=build,
    phases=phases_of,
    special_case=_special_case,
    check=check,
  )
)
