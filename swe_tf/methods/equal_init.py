"""Equal initial weights: the control for what the shared start alone does.

What: the blocks start as copies of the first unit, as in SWE, and are never
tied: from the first update on each layer trains by itself.

Use: `task.sharing.mode=equal_init`, with `unit_size`.

Cost: none; the step is the baseline's.

Where it does not help: it is a control. What SWE has over it comes from
sharing, and not from the initial weights.
"""

from swe_tf.methods import plans
from swe_tf.training import phases


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  plan = plans.plan_of(ingredients.model, ingredients.config.task.sharing)
  one_phase = phases.OnePhase(plan, begin=plan.tie_weights)
  return phases.Training(ingredients.optimizer, one_phase)
