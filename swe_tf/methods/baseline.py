"""The baseline, `task.sharing.mode=none`: Model Garden's training, as it is."""

from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.training import phases


def build(ingredients: phases.Ingredients) -> phases.Training:
  model, sharing = ingredients.model, ingredients.config.task.sharing
  repeats = plans.find_repeated_blocks(model)
  plan = plans.plan_of(model, sharing) if repeats else None
  return phases.Training(ingredients.optimizer, phases.OnePhase(plan))


catalog.register(
  catalog.Method(
    name=catalog.BASELINE, build=build, ignores=frozenset({"tau", "units"})
  )
)
