"""How one update runs: share the weights, then the stock update, op for op.

`SharedWeightsOptimizer` wraps any Model Garden or TF-Keras optimizer. While
shared, on each replica (Algorithm 1, lines 4 to 6):

  1. the mean gradient over each tie is taken locally;
  2. only stems and untied variables are all-reduced and updated;
  3. the new stem is copied to its branches.

Once unshared, calls go to the inner optimizer unchanged. The phase is fixed
when a step is traced: `phase` is never a tensor, so there is no `cond` in
either program, and whatever compiles steps (`training.trainer`, `callback`)
must recompile after `untie()`. When to untie is up to `schedule.py`.
"""

import dataclasses
from typing import Any

import tensorflow as tf
import tf_keras

from swe_tf import errors
from swe_tf.sharing import cosines
from swe_tf.sharing import gradients
from swe_tf.sharing import keras_family
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule
from swe_tf.sharing import slots
from swe_tf.sharing import untie_step as untie_step_lib
from swe_tf.sharing import wrapper

SHARED = "shared"
UNSHARED = "unshared"
_NOT_YET = -1


@tf_keras.saving.register_keras_serializable("swe_tf")
class SharedWeightsOptimizer(wrapper.WrappedOptimizer):
  """Updates the variables of a tie alike until `untie()`, then separately.

  Weights and slots equal those of the literal Algorithm 1 (the inner optimizer
  on all variables, each tied gradient replaced by the mean over its tie), and
  the variables of a tie are bit-identical while shared. With a legacy inner
  optimizer, branches have no slots of their own until they are untied; a new
  one makes all slots at once.

  Global-norm clipping counts a tied gradient once for each variable of the tie.

  Attributes:
    inner_optimizer: The optimizer that makes the updates.
    plan: The current ties.
    untie_step: Tau, or None if only `untie()` ends the shared phase.
  """

  def __new__(cls, inner_optimizer, plan, *args, **kwargs):
    """Returns the optimizer of `keras3` if either is of Keras 3."""
    tied = [v for tie in getattr(plan, "ties", ()) for v in tie][:1]
    if any(map(keras_family.is_keras3, [inner_optimizer, *tied])):
      wrap = keras_family.keras3("SharedWeightsOptimizer")
      return wrap(inner_optimizer, plan, *args, **kwargs)
    return super().__new__(cls)

  def __init__(
    self,
    inner_optimizer,
    plan: plan_lib.SharingPlan | plan_lib.PlanConfig,
    untie_step: int | None = None,
    *,
    cosine_interval: int | None = None,
    cosines_decide: bool = False,
    loops: untie_step_lib.LoopSchedule | None = None,
    name: str = "SharedWeightsOptimizer",
  ):
    """Initializes the optimizer in its shared phase, or unshared if tau is 0.

    Args:
      inner_optimizer: A legacy or new TF-Keras optimizer. It is used as is,
        never cloned.
      plan: The ties, or, in a loaded optimizer, what was saved of them. Call
        `plan.tie_weights()` before the first update.
      untie_step: Tau. This class only stores it: the trainer or the callback
        calls `untie()` at that step. 0 starts unshared.
      cosine_interval: The number of updates between two measurements of
        `gradient_cosines` while shared; None never measures them.
      cosines_decide: Whether untying depends on the cosines. If so, with
        micro-batches they are measured on the whole batch, which takes the
        summed gradients of all layers; if not, they are measured on each
        micro-batch and averaged.
      loops: How many units are applied, and so have gradients, while shared;
        None for all. All units are updated in any case.
    """
    if not isinstance(plan, plan_lib.SharingPlan | plan_lib.PlanConfig):
      raise TypeError(
        f"plan must be a SharingPlan, got {type(plan).__name__}: make it with "
        "SharingPlan.from_layers(layers)."
      )
    untie_step = untie_step_lib.check_untie_step(untie_step)
    super().__init__(inner_optimizer, name=name)
    self._whole_plan = self._plan = self._no_dependency(plan)
    self._trained = self._no_dependency([])
    self.untie_step = untie_step
    if untie_step != 0 and isinstance(plan, plan_lib.SharingPlan):
      self._require_alike()
    # The phase is data: a resumed run finds it in the checkpoint.
    self._untied_at = _state(0 if untie_step == 0 else _NOT_YET, "untied_at")
    self._groups = _state((0,) * plan.num_units, "groups")
    if isinstance(plan, plan_lib.SharingPlan):
      self._groups.assign(plan.groups)
    self._loops = loops or untie_step_lib.LoopSchedule(plan.num_units)
    self._saw_every_tie = False
    self._makes_summands = False  # `summands` leaves the branches out.
    # Of the step that was made, or compiled, last.
    self.compiled_phase: str | None = None
    self._copy_when_built = self._no_dependency([])
    self._cosines_decide = cosines_decide
    self._cosines = None
    if cosine_interval and plan.num_units > 1:
      self._cosines = cosines.CosineMeter(plan.num_units, cosine_interval)

  @property
  def has_plan(self) -> bool:
    """Whether the ties are known; in a loaded optimizer, once it is built."""
    return isinstance(self._whole_plan, plan_lib.SharingPlan)

  @property
  def plan(self) -> plan_lib.SharingPlan:
    """The ties, with the groups into which they are currently split."""
    if not self.has_plan:
      raise errors.UsageError(
        "The plan was loaded, and its variables are not known yet: call "
        "optimizer.build(model.trainable_variables) first."
      )
    groups = tuple(_read(self._groups).tolist())
    if groups != self._plan.groups:
      # Not `_plan.split`: an earlier checkpoint has larger groups.
      self._plan = self._no_dependency(self._whole_plan.split(groups))
    return self._plan

  @property
  def untied_at(self) -> int | None:
    """The number of updates made when the weights were untied, or None."""
    step = int(_read(self._untied_at))
    return None if step == _NOT_YET else step

  @property
  def phase(self) -> str:
    """`"shared"` or `"unshared"`: what a step traced now will do."""
    return SHARED if self.untied_at is None else UNSHARED

  @property
  def phase_state(self) -> list[tf.Variable]:
    """The variables in which a checkpoint keeps the phase."""
    return [self._untied_at, self._groups]

  @property
  def loops(self) -> int:
    """How many units are applied in the next update."""
    if self.phase == UNSHARED:
      return self.plan.num_units
    return self._loops.loops_at(int(_read(self.iterations)))

  @property
  def gradient_cosines(self) -> schedule.GradientCosines:
    """The cosines of the tied gradients; NaN before the first measurement."""
    if self._cosines is None:
      nothing = (float("nan"),) * (self.plan.num_units - 1)
      return schedule.GradientCosines(float("nan"), nothing)
    return self._cosines.read()

  def begin(self) -> None:
    """Starts branches as copies of their stems (Algorithm 1, line 2)."""
    if self.phase == SHARED:
      self.plan.tie_weights()

  def make_update(self, grads_and_vars, name: str | None, aggregate: bool):
    """Makes one update: Algorithm 1, lines 4 to 6. See the base class."""
    variables = [v for _, v in grads_and_vars]
    self.compiled_phase = self.phase
    if self.phase == UNSHARED:
      if self._copy_when_built:
        with tf.init_scope():
          self.build(variables)
      return super().make_update(grads_and_vars, name, aggregate)
    may_be_means = not aggregate or self._makes_summands
    self._require_ties(variables, may_be_means)
    self._require_tau_ahead()
    with tf.init_scope():  # The inner optimizer will not see the branches.
      self.build(variables)

    if aggregate:
      grads_and_vars = self.aggregate_gradients(grads_and_vars)
    else:  # They are means already, unless the caller did not use ours.
      means = gradients.mean_over_ties(grads_and_vars, self._applied)
      grads_and_vars = [(g, v) for g, v in means if g is not None]

    inner = self.inner_optimizer
    if getattr(inner, "global_clipnorm", None) and self.loops > 1:
      # The clipping of the inner optimizer then changes nothing: it counts
      # every tie only once, so the norm that it sees is within the limit.
      grads_and_vars = gradients.clip_by_global_norm(
        slots.clip_by_value(inner, grads_and_vars),
        inner.global_clipnorm,
        self._multiplicity,
      )

    result = super().make_update(grads_and_vars, name, aggregate=False)
    # Updated where the stem is.
    copied = [(stem, rest) for stem, *rest in self.plan.ties if rest]
    wrapper.update_on_replicas(_assign_stem, copied)
    return result

  def _require_ties(self, variables, may_be_means: bool = False) -> None:
    """Raises unless all tied variables are there.

    Means, which come after the gradients of all, are those of stems only; other
    than as means, stems alone are those of a model whose branches were frozen.
    """
    given = {plan_lib.variable_key(v) for v in variables}
    absent = lambda some: [
      v for v in some if plan_lib.variable_key(v) not in given
    ]
    ties = self._applied.ties  # With few loops, the model has only these.
    branches = [v for _, *rest in ties for v in rest]
    missing = absent([v for tie in ties for v in tie])
    if not missing:
      if not self._saw_every_tie:
        self._require_alike()  # The user may have excluded some since.
      self._saw_every_tie = True
      return
    are_stems_only = len(absent(branches)) == len(branches)
    if not (may_be_means and self._saw_every_tie and are_stems_only):
      raise errors.UsageError(
        f"The plan ties {missing[0].name}, which is not among the {len(given)} "
        f"variables to update; so are {len(missing)} in all. Make the plan "
        "from the layers of this model, and freeze layers before that."
      )

  def _require_alike(self) -> None:
    for tie in self._whole_plan.ties:
      slots.check_alike(self.inner_optimizer, tie)

  def _require_tau_ahead(self, updates: int = 1) -> None:
    """Raises if so many more updates would be shared after tau."""
    eager, tau = tf.executing_eagerly(), self.untie_step
    if not eager:
      stale = "This step was compiled before untie(): compile it again."
      tf.debugging.Assert(self._untied_at == _NOT_YET, [stale])
    if tau is None:
      return
    message = (
      f"The weights are still shared after untie_step ({tau}) updates. Pass "
      "callbacks=[swe_tf.UntieCallback()] to fit; in a loop of your own, call "
      f"optimizer.untie() after update {tau} and compile the step again."
    )
    if _read(self.iterations) + updates > tau:
      raise errors.UsageError(message)
    if not eager:  # XLA leaves it out: see `finalize...`.
      tf.debugging.Assert(self.iterations + updates <= tau, [message])

  @tf.autograph.experimental.do_not_convert
  def aggregate_gradients(self, grads_and_vars):
    """Reduces the means of the ties over the replicas, without the branches."""
    grads_and_vars = list(grads_and_vars)
    if self.phase == UNSHARED:
      return super().aggregate_gradients(grads_and_vars)
    self._require_ties([v for _, v in grads_and_vars], self._makes_summands)
    means = gradients.mean_over_ties(grads_and_vars, self._applied)
    # Sums over micro-batches have no branches, and were measured already.
    if len(means) < len(grads_and_vars):
      self._measure_cosines(grads_and_vars, means)
    return self.clip_and_reduce(means, self._multiplicity)

  def summands(self, grads_and_vars: gradients.GradsAndVars, index: tf.Tensor):
    """Returns, while shared, the means of the ties, without the branches."""
    if self.phase == UNSHARED or (self._cosines and self._cosines_decide):
      return grads_and_vars
    self._require_ties([v for _, v in grads_and_vars])
    self._makes_summands = True
    with tf.init_scope():  # The update will not see all variables.
      self.build([v for _, v in grads_and_vars])
    means = gradients.mean_over_ties(grads_and_vars, self._applied)
    self._measure_cosines(grads_and_vars, means, index)
    return means

  def _measure_cosines(self, grads_and_vars, means, index=None) -> None:
    # Units that are not applied have no gradients to compare.
    if self._cosines and self.loops == self.plan.num_units:
      step = tf.cast(self.iterations, tf.int64) + 1
      self._cosines.measure(step, grads_and_vars, means, self.plan, index)

  @property
  def _applied(self) -> plan_lib.SharingPlan:
    """The ties among the applied units, which are those with gradients."""
    plan, loops = self.plan, self.loops
    return plan if loops == plan.num_units else plan.first_units(loops)

  @property
  def _multiplicity(self) -> dict[str, int]:
    """How many variables the gradient of a stem stands for, by key."""
    return {plan_lib.variable_key(t[0]): len(t) for t in self._applied.ties}

  def split(self, groups: plan_lib.Groups) -> None:
    """Splits the ties into smaller groups: copies slots to the new stems.

    Runs eagerly in the cross-replica context. Steps compiled before this still
    share as they did: compile them again.

    Args:
      groups: For each unit, the first unit of its group; `schedule.UNTIED` ends
        the shared phase.
    """
    if groups == schedule.UNTIED:
      self.untie()
      return
    self._copy_slots_to(self.plan.split(groups).stems)
    self._groups.assign(groups)

  def untie(self) -> None:
    """Ends the shared phase: copies the stems' slots, flips the phase.

    Runs eagerly in the cross-replica context. Steps compiled before this still
    share: compile them again.
    """
    if self.phase == UNSHARED:
      return
    self._copy_slots_to(v for _, *rest in self.plan.ties for v in rest)
    self._untied_at.assign(tf.cast(self.iterations, tf.int64))

  def _copy_slots_to(self, variables) -> None:
    stem_of = {
      plan_lib.variable_key(v): stem
      for stem, *rest in self.plan.ties
      for v in rest
    }
    found = [(stem_of.get(plan_lib.variable_key(v)), v) for v in variables]
    pairs = [(stem, v) for stem, v in found if stem is not None]
    if slots.can_have_slots(self.inner_optimizer):
      slots.copy_slots(self.inner_optimizer, pairs)
    else:
      # A new optimizer that was restored gets its slots only when it is built.
      self._copy_when_built.extend(pairs)

  def build(self, var_list) -> None:
    """See base class; copies the slots that were not there at untying."""
    # While shared, an update may show only the stems of what was seen before.
    if len(var_list) > len(self._trained):
      self._trained = self._no_dependency(list(var_list))
    if not self.has_plan:
      plan = self._whole_plan.resolve(var_list)
      self._whole_plan = self._plan = self._no_dependency(plan)
      self._require_alike()
    if self._copy_when_built:
      self._require_ties(var_list)
    super().build(var_list)
    slots.copy_slots(self.inner_optimizer, self._copy_when_built)
    self._copy_when_built.clear()

  def finalize_variable_values(self, var_list) -> None:
    """See base class; while shared, branches have the averages of stems."""
    inner = self.inner_optimizer
    if self.phase == SHARED:
      self._require_tau_ahead(updates=0)
      if getattr(inner, "use_ema", False) and slots.can_have_slots(inner):
        self._copy_slots_to(v for _, *rest in self.plan.ties for v in rest)
    super().finalize_variable_values(var_list)

  @property
  def variables(self):
    inner = super().variables
    return type(inner)([*inner, *self.phase_state])

  def get_config(self) -> dict[str, Any]:
    """Returns what `model.save` needs; the plan by its variables' names."""
    inner, plan = self.inner_optimizer, self._whole_plan
    if slots.is_legacy(inner) or self._loops.stages:
      raise NotImplementedError(
        "Keras does not save the slots of a legacy optimizer with a model, nor "
        "would it know of few loops. Use an optimizer of tf_keras.optimizers, "
        "or save a tf.train.Checkpoint or only the weights."
      )
    if isinstance(plan, plan_lib.SharingPlan):
      plan = plan_lib.PlanConfig.of(plan, self._trained)
    return {
      "name": self.name,
      "inner_optimizer": tf_keras.optimizers.serialize(inner),
      "plan": dataclasses.asdict(plan),
      "untie_step": self.untie_step,
      # The SavedModel format has no state of optimizers: without this, a loaded
      # model would be tied again.
      "untied": self.phase == UNSHARED,
    }

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Makes the optimizer again; its plan is resolved when it is built."""
    config = dict(config)
    inner = tf_keras.optimizers.deserialize(
      config.pop("inner_optimizer"), custom_objects=custom_objects
    )
    plan = plan_lib.PlanConfig(**config.pop("plan"))
    is_untied = config.pop("untied")
    optimizer = cls(inner, plan, **config)
    if is_untied:
      optimizer._untied_at.assign(0)  # Or what is loaded after this.
    return optimizer


def _state(value, name: str) -> tf.Variable:
  """Makes a variable for the checkpoint that only the host changes."""
  with tf.init_scope():
    return tf.Variable(
      value,
      dtype=tf.int64,
      trainable=False,
      aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
      name=name,
    )


def _read(variable: tf.Variable):
  # Also while tracing: a restore may change it.
  with tf.init_scope():
    return variable.numpy()


def _assign_stem(stem: tf.Variable, branches: list[tf.Variable]) -> None:
  value = stem.read_value()
  for branch in branches:
    branch.assign(value)
