"""Equal initial weights, `task.sharing.mode=equal_init`: the control for SWE.

The blocks start as copies of the first unit, but are never tied. What SWE gains
over it comes from sharing. The card: docs/cards/equal_init.md.
"""

from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.training import phases


def build(ingredients: phases.Ingredients) -> phases.Training:
  plan = plans.plan_of(ingredients.model, ingredients.config.task.sharing)
  one_phase = phases.OnePhase(plan, begin=plan.tie_weights)
  return phases.Training(ingredients.optimizer, one_phase)


_TAU = frozenset({"tau"})
catalog.register(
  catalog.Method(
    name="equal_init", mode="equal_init", build=build, ignores=_TAU
  )
)
