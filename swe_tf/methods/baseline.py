"""The baseline: Model Garden's training, with nothing added.

What: the bare optimizer of the task, one program for the whole run. Sharing
for no steps, or in units of all layers, is the baseline too.

Use: `task.sharing.mode=none`.

Cost: none; it is what the others are compared with.

Where it does not help: it is the control. Compare at the same number of steps,
with a fully decayed schedule, at a peak learning rate tuned as for the others.
"""

from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.training import phases


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  blocks = plans.find_repeated_blocks(ingredients.model)
  sharing = ingredients.config.task.sharing
  plan = plans.make_sharing_plan(blocks, sharing) if blocks else None
  return phases.Training(ingredients.optimizer, phases.OnePhase(plan))


catalog.register(
  catalog.Method(
    name=catalog.BASELINE, build=build, ignores=frozenset({"tau", "units"})
  )
)
