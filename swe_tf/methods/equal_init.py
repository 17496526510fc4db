"""Equal initial weights: the control for what the shared start alone does.

What: the blocks start as copies of the first unit, as in SWE, but are never
tied: each layer trains on its own from the first update.

Use: `task.sharing.mode=equal_init`, with `unit_size`.

Cost: none; the step is the baseline's.

Where it does not help: it is a control. What SWE gains over it comes from
sharing, not from the initial weights.
"""

from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.training import phases


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  plan = plans.plan_of(ingredients.model, ingredients.config.task.sharing)
  one_phase = phases.OnePhase(plan, begin=plan.tie_weights)
  return phases.Training(ingredients.optimizer, one_phase)


catalog.register(
  catalog.Method(
    name="equal_init",
    mode="equal_init",
    build=build,
    ignores=frozenset({"tau"}),
  )
)
