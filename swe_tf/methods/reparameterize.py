"""Reparameterization (appendix B.1): layers also move in the common direction.

For the whole run, the gradient of layer i is replaced by (g_0 + g_i) / 2, where
g_0 is the mean gradient over the tie. The card: docs/cards/reparameterize.md.
"""

from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.sharing import gradients
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import wrapper
from swe_tf.training import phases


class ReparameterizedOptimizer(wrapper.WrappedOptimizer):
  """Gives the inner optimizer (g_0 + g_i) / 2 for every tied variable."""

  def __init__(
    self,
    inner_optimizer,
    plan: plan_lib.SharingPlan,
    name: str = "ReparameterizedOptimizer",
  ):
    super().__init__(inner_optimizer, name=name)
    self._plan = self._no_dependency(plan)

  def transform(self, grads_and_vars):
    return gradients.mix_with_mean(grads_and_vars, self._plan)


def build(ingredients: phases.Ingredients) -> phases.Training:
  plan = plans.plan_of(ingredients.model, ingredients.config.task.sharing)
  optimizer = ReparameterizedOptimizer(ingredients.optimizer, plan)
  return phases.Training(optimizer, phases.OnePhase(plan))


def _special_case(resolved: catalog.Resolved) -> str | None:
  return catalog.BASELINE if resolved.is_never_shared else None


catalog.register(
  catalog.Method(
    name="reparameterize",
    mode="reparameterize",
    build=build,
    ignores=frozenset({"tau"}),
    special_case=_special_case,
  )
)
