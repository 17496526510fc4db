"""Reparameterization: every layer moves along the common direction too.

Appendix B.1 of the paper: for the whole run, the gradient of layer i is
replaced by (g_0 + g_i) / 2, where g_0 is the mean gradient over the tie.
"""

import tensorflow as tf

from swe_tf.sharing import gradients
from swe_tf.sharing import optimizer as optimizer_lib


class UntiedOptimizer(optimizer_lib.SharedWeightsOptimizer):
  """Gives the inner optimizer other gradients than those that came.

  The weights are never shared, so it is an optimizer whose shared phase is
  over before the first update. A subclass has `transform`.
  """

  def __init__(self, inner_optimizer, plan, name):
    super().__init__(inner_optimizer, plan, untie_step=0, name=name)

  def transform(self, grads_and_vars):
    """Returns the pairs that the inner optimizer gets, before the all-reduce.

    Args:
      grads_and_vars: Pairs for every variable of the model, of this replica.
    """
    raise NotImplementedError

  def aggregate_gradients(self, grads_and_vars):
    return super().aggregate_gradients(self.transform(list(grads_and_vars)))

  @tf.autograph.experimental.do_not_convert
  def apply_gradients(
    self,
    grads_and_vars,
    name=None,
    skip_gradients_aggregation=False,
    **kwargs,
  ):
    """Makes one update. See the base class."""
    aggregate = not skip_gradients_aggregation and kwargs.get(
      "experimental_aggregate_gradients", True
    )
    grads_and_vars = list(grads_and_vars)
    # Whoever aggregated before came through `aggregate_gradients`.
    if aggregate:
      grads_and_vars = self.transform(grads_and_vars)
    return super().apply_gradients(
      grads_and_vars, name, skip_gradients_aggregation, **kwargs
    )


class ReparameterizedOptimizer(UntiedOptimizer):
  """Gives the inner optimizer (g_0 + g_i) / 2 for every tied variable."""

  def __init__(self, inner_optimizer, plan, name="ReparameterizedOptimizer"):
    super().__init__(inner_optimizer, plan, name=name)

  def transform(self, grads_and_vars):
    return gradients.mix_with_mean(grads_and_vars, self.plan)
