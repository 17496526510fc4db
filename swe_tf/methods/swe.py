"""SWE: share the weights of all blocks, then untie them and train on.

What: Algorithm 1 of the paper. While shared, the gradients of a tie are
averaged and all its layers get the same update; at the untie step the optimizer
slots are copied, and from then on each layer trains on its own.

Use: `task.sharing.mode=swe`, `untie_fraction` (or `untie_step`) and
`unit_size`; `rule` for a rule other than a fixed step. With `loops` the unit is
applied fewer times while it is shared; the whole stack is untied from it. The
other departures from Algorithm 1 are off unless they are set: `own_init`,
`untied_as`.

The cards: docs/cards/swe.md; always_tied.md for the ALBERT-like special case
that stays shared to the end.
"""

import dataclasses

import tf_keras

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.methods import swe_phases
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import untie_step as untie_step_lib
from swe_tf.training import phases


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
    own_init=sharing.own_init,
  )
  views = {}
  if sharing.loops:
    # Keras's new optimizers order their slots as they first see the variables.
    optimizer.build(ingredients.model.trainable_variables)
    views = _views(ingredients, plan, loops)
  return phases.Training(
    optimizer,
    swe_phases.SharingPhases(
      optimizer,
      rule,
      loops,
      views,
      (sharing.untied_as, getattr(config.task, "seed", 0)),
    ),
  )


def _views(
  ingredients: phases.Ingredients,
  plan: plan_lib.SharingPlan,
  loops: untie_step_lib.LoopSchedule,
) -> dict[int, tf_keras.Model]:
  """Returns the models that apply fewer units, by number of loops."""
  build_encoder = plans.encoder_builder(ingredients.task)
  return {
    count: plans.view_of(
      ingredients.model, list(range(count * plan.unit_size)), build_encoder
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
