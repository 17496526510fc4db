"""Stem and branches: the exact reparameterization, each with its own update.

What: Equation 1 of the paper, for the whole run: w_i = w_0 / sqrt(L) + v_i,
with L the number of units, w_0 the stem and v_i the branches (the paper's w
with a tilde). The optimizer updates w_0 and all v_i; section 2 derives that
plain gradient descent then moves w_i by eta (mean_j g_j + g_i).

Use: `task.sharing.mode=stem_branch`, with `unit_size`.

Cost: the weights and slots of the stem, and an assignment of all tied weights
after each update.

Where it does not help: it is here to be compared with `reparameterize.py`,
which feeds (mean_j g_j + g_i) / 2 to the optimizer in place of g_i. For
gradient descent the two are the same up to the learning rate; for Adam and the
like, whose update is not linear, they are not.
"""

from collections.abc import Sequence
import math

import tensorflow as tf

from swe_tf.methods import catalog
from swe_tf.methods import plans
from swe_tf.sharing import gradients
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import wrapper
from swe_tf.training import phases


def stem_scale(num_units: int) -> float:
  """Returns the factor 1 / sqrt(L) of Equation 1."""
  return 1.0 / math.sqrt(num_units)


def stem_gradient(grads: Sequence[tf.Tensor], scale: float):
  """Returns g_0 = scale * sum_i g_i; None if the loss reaches no variable."""
  reached = [tf.convert_to_tensor(g) for g in grads if g is not None]
  return tf.add_n(reached) * scale if reached else None


class StemBranchOptimizer(wrapper.WrappedOptimizer):
  """Lets the inner optimizer update stem and branches instead of the weights.

  Slots, weight decay and clipping apply to the stems and the branches, and not
  to the tied variables of the model. The name of a branch contains that of its
  variable, and the name of a stem that of unit 0's, so whatever is excluded
  from weight decay by name still is.

  Attributes:
    plan: The ties.
    stems: The w_0 of each tie, in the order of `plan.ties`.
    branches: The v_i of the variables of each tie.
  """

  def __init__(
    self,
    inner_optimizer,
    plan: plan_lib.SharingPlan,
    name: str = "StemBranchOptimizer",
  ):
    super().__init__(inner_optimizer, name=name)
    self.plan = self._no_dependency(plan)
    with tf.init_scope():
      self.stems = [_like(tie[0], "stem") for tie in plan.ties]
      self.branches = [[_like(v, "branch") for v in tie] for tie in plan.ties]
    self.begin()

  def begin(self) -> None:
    """Starts stems at 0 and branches at the model's weights. Runs eagerly."""
    for stem, branches, tie in self._rows():
      stem.assign(tf.zeros_like(stem))
      for branch, variable in zip(branches, tie):
        branch.assign(variable.read_value())

  def _rows(self):
    return zip(self.stems, self.branches, self.plan.ties)

  def make_update(self, grads_and_vars, name: str | None, aggregate: bool):
    """Makes one update. See the base class."""
    result = super().make_update(grads_and_vars, name, aggregate)
    self._assign_weights()
    return result

  def transform(self, grads_and_vars) -> list[tuple[tf.Tensor, tf.Variable]]:
    """Turns gradients of tied variables into those of stems and branches."""
    scale = stem_scale(self.plan.num_units)
    by_tie = gradients.gradients_of(grads_and_vars, self.plan.ties)
    tied: set[str] = set()
    pairs = []
    for grads, (stem, branches, tie) in zip(by_tie, self._rows()):
      tied.update(map(plan_lib.variable_key, tie))
      pairs.append((stem_gradient(grads, scale), stem))
      pairs.extend(zip(grads, branches))
    untied = [
      (g, v) for g, v in grads_and_vars if plan_lib.variable_key(v) not in tied
    ]
    return untied + pairs

  def _assign_weights(self) -> None:
    """Sets every tied variable from its stem and branch, on each replica."""
    scale = stem_scale(self.plan.num_units)

    def assign(variable, stem, branch):
      variable.assign(stem * scale + branch)

    def assign_all(strategy):
      for stem, branches, tie in self._rows():
        for branch, variable in zip(branches, tie):
          strategy.extended.update(
            variable, assign, args=(stem, branch), group=False
          )

    tf.__internal__.distribute.interim.maybe_merge_call(
      assign_all, tf.distribute.get_strategy()
    )

  @property
  def variables(self):
    branches = [v for row in self.branches for v in row]
    return super().variables + list(self.stems) + branches


def _like(variable: tf.Variable, what: str) -> tf.Variable:
  """Makes a variable of the same shape, whose name contains `variable`'s."""
  return tf.Variable(
    tf.zeros(variable.shape, variable.dtype),
    name=f"{what}/{variable.name.split(':')[0]}",
  )


def build(ingredients: phases.Ingredients) -> phases.Training:
  """Returns the training of a run; see `catalog.Method.build`."""
  plan = plans.plan_of(ingredients.model, ingredients.config.task.sharing)
  optimizer = StemBranchOptimizer(ingredients.optimizer, plan)
  return phases.Training(optimizer, phases.OnePhase(plan, optimizer.begin))


catalog.register(
  catalog.Method(
    name="stem_branch",
    mode="stem_branch",
    build=build,
    ignores=frozenset({"tau"}),
  )
)
