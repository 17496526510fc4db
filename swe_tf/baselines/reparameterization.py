"""Reparameterization: every layer moves along the common direction too.

Appendix B.1 of the paper: for the whole run, the gradient of layer i is
replaced by (g_0 + g_i) / 2, where g_0 is the mean gradient over the tie.
"""

from swe_tf.sharing import gradients
from swe_tf.sharing import optimizer as optimizer_lib


class ReparameterizedOptimizer(optimizer_lib.SharedWeightsOptimizer):
  """Gives the inner optimizer (g_0 + g_i) / 2 for every tied variable.

  The weights are never shared, so it is an optimizer whose shared phase is
  over before the first update.
  """

  def __init__(self, inner_optimizer, plan, name="ReparameterizedOptimizer"):
    super().__init__(inner_optimizer, plan, untie_step=0, name=name)

  def aggregate_gradients(self, grads_and_vars):
    return super().aggregate_gradients(self._mix(grads_and_vars))

  def apply_gradients(
      self,
      grads_and_vars,
      name=None,
      skip_gradients_aggregation=False,
      **kwargs,
  ):
    aggregate = not skip_gradients_aggregation and kwargs.get(
        "experimental_aggregate_gradients", True
    )
    # Whoever aggregated before came through `aggregate_gradients`.
    pairs = self._mix(grads_and_vars) if aggregate else grads_and_vars
    return super().apply_gradients(
        pairs, name, skip_gradients_aggregation, **kwargs
    )

  def _mix(self, grads_and_vars):
    return gradients.mix_with_mean(list(grads_and_vars), self.plan)
