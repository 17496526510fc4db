"""Sharing for Keras 3, on TensorFlow or JAX: how one update runs.

Algorithm 1 run literally: every variable has its own slots, the inner optimizer
updates all of them, and while shared it gets, for each tied gradient, the mean
over the tie (line 6). So clipping, weight decay, EMA, gradient accumulation and
slots are those of the inner optimizer, and untying has nothing to copy. The
price: a shared step costs as much as an unshared one, where the tf_keras
optimizer (`optimizer.py`) updates and all-reduces one variable of a tie only.

A program compiled while shared selects, by the number of updates made, the mean
or the gradient itself: it unties by itself at `untie_step`, and at once after
`untie()`, whether or not anybody compiles it again. A program compiled once
unshared is the inner optimizer's, op for op.
"""

import dataclasses
from typing import Any
import warnings

import keras

from swe_tf import errors
from swe_tf.sharing import keras_family
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import untie_step as untie_step_lib

SHARED, UNSHARED = "shared", "unshared"
_NOT_YET = -1
_BACKENDS = ("tensorflow", "jax")
# What the base class would keep for itself; it is the inner optimizer's.
_SETTINGS = (
  *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue"),
  *("use_ema", "ema_momentum", "ema_overwrite_frequency"),
  *("loss_scale_factor", "gradient_accumulation_steps"),
)
_OWN = ("inner_optimizer", "untie_step", "name", "built")


def find(optimizer) -> "SharedWeightsOptimizer | None":
  """Returns the SharedWeightsOptimizer inside a LossScaleOptimizer, if any."""
  while optimizer is not None and not isinstance(
    optimizer, SharedWeightsOptimizer
  ):
    optimizer = getattr(optimizer, "inner_optimizer", None)
  return optimizer


def _check(inner, plan, untie_step) -> int | None:
  """Returns tau; raises if the arguments of the optimizer do not fit."""
  if not isinstance(inner, keras.optimizers.Optimizer):
    raise TypeError(
      "The plan is of Keras 3 layers, but inner_optimizer "
      f"({type(inner).__module__}.{type(inner).__qualname__}) is no "
      "keras.optimizers.Optimizer. Take the layers and the optimizer from the "
      "same Keras."
    )
  if find(inner) is not None:
    raise TypeError(
      "inner_optimizer shares weights already: wrap an optimizer once."
    )
  if isinstance(inner, keras.optimizers.LossScaleOptimizer):
    raise TypeError(
      "inner_optimizer is a LossScaleOptimizer. Wrap them the other way round: "
      "LossScaleOptimizer(SharedWeightsOptimizer(inner, plan))."
    )
  if not isinstance(plan, plan_lib.SharingPlan | plan_lib.PlanConfig):
    raise TypeError(
      "plan must be a SharingPlan, made by SharingPlan.from_layers(layers), "
      f"got {plan!r}."
    )
  stems = plan.stems if isinstance(plan, plan_lib.SharingPlan) else ()
  if not all(map(keras_family.is_keras3, stems)):
    raise TypeError(
      f"inner_optimizer is of Keras 3, but plan ({plan!r}) is of tf_keras "
      "layers. Take the layers and the optimizer from the same Keras."
    )
  if keras.config.backend() not in _BACKENDS:
    raise errors.UsageError(
      f"The backend of Keras ({keras.config.backend()}) must be "
      f"{' or '.join(_BACKENDS)}: set KERAS_BACKEND before Keras is imported."
    )
  return untie_step_lib.check_untie_step(untie_step)


def _on_host(variable) -> int | None:
  """Reads a variable, in a trace too; None while `fit` has it on JAX."""
  value = variable._value  # pylint: disable=protected-access
  if keras.config.backend() == "tensorflow":
    import tensorflow as tf

    with tf.init_scope():
      return int(value.numpy())
  return None if value is None or value.is_deleted() else int(value)


@keras.saving.register_keras_serializable("swe_tf")
class SharedWeightsOptimizer(keras.optimizers.Optimizer):
  """Updates the variables of a tie alike until tau, then separately.

  Settings of the inner optimizer can be read and set on this one.

  Attributes:
    inner_optimizer: The optimizer that makes the updates. It is used as is,
      never cloned.
    untie_step: Tau, or None if only `untie()` ends the shared phase.
  """

  def __init__(
    self,
    inner_optimizer: keras.optimizers.Optimizer,
    plan: plan_lib.SharingPlan | plan_lib.PlanConfig,
    untie_step: int | None = None,
    *,
    name: str = "shared_weights_optimizer",
  ):
    """Initializes the optimizer in its shared phase, or unshared if tau is 0.

    Args:
      inner_optimizer: A Keras 3 optimizer.
      plan: The ties, or, in a loaded optimizer, what was saved of them.
        Branches become copies of their stems when the optimizer is built,
        before the first update.
      untie_step: Tau: the first tau updates are shared. With gradient
        accumulation an update is several batches.
      name: The name of the optimizer.
    """
    untie_step = _check(inner_optimizer, plan, untie_step)
    super().__init__(learning_rate=0.0, name=name)
    for setting in _SETTINGS:
      self.__dict__.pop(setting, None)
    self.inner_optimizer = inner_optimizer
    self.untie_step = untie_step
    self._plan: plan_lib.SharingPlan | plan_lib.PlanConfig = plan
    # The phase is data: a resumed run finds it beside the slots.
    self._untied_at = self.add_variable(
      shape=(),
      initializer=keras.initializers.Constant(_NOT_YET),
      dtype="int",
      aggregation="only_first_replica",
      name="untied_at",
    )
    self._last_untied_at: int | None = None
    # Of the step that was made, or compiled, last.
    self.compiled_phase: str | None = None

  @property
  def plan(self) -> plan_lib.SharingPlan:
    """The ties."""
    if isinstance(self._plan, plan_lib.PlanConfig):
      raise errors.UsageError(
        "The plan was loaded, and its variables are not known yet: call "
        "optimizer.build(model.trainable_variables) first."
      )
    return self._plan

  @property
  def untied_at(self) -> int | None:
    """The number of updates made when the weights were untied, or None."""
    by_hand, step = _on_host(self._untied_at), self._step()
    tau = self.untie_step
    if by_hand is not None and step is not None:
      is_over = tau is not None and step >= tau
      self._last_untied_at = (
        by_hand if by_hand != _NOT_YET else tau if is_over else None
      )
    return self._last_untied_at

  @property
  def phase(self) -> str:
    """`"shared"` or `"unshared"`."""
    return SHARED if self.untied_at is None else UNSHARED

  @property
  def batches(self) -> int | None:
    """The number of batches so far; None while `fit` has it on JAX.

    Without gradient accumulation, it is the number of updates.
    """
    return _on_host(self.inner_optimizer._iterations)  # pylint: disable=protected-access

  def _step(self) -> int | None:
    per_update = self.inner_optimizer.gradient_accumulation_steps or 1
    return None if self.batches is None else self.batches // per_update

  def untie(self) -> None:
    """Ends the shared phase. Runs eagerly, between two steps.

    Slots need not be copied: those of a tie are equal. Compile steps again to
    have them without the selection.
    """
    step = self._step()
    if step is None:
      raise errors.UsageError(
        "untie() was called in the middle of fit, which has the state: call it "
        "in a callback, as `self.model.optimizer.untie()`."
      )
    if self.phase == SHARED:
      self._untied_at.assign(step)
      self._last_untied_at = step

  def build(self, variables) -> None:
    """Makes the slots, and makes branches copies of their stems."""
    variables = list(variables)
    if not variables:
      raise errors.UsageError(
        "There are no variables to train. If this is a model loaded from the "
        "legacy HDF5 format, Keras does not restore its optimizer: save it as "
        "`.keras`, or load it with compile=False."
      )
    if isinstance(self._plan, plan_lib.PlanConfig):
      self._plan = self._plan.resolve(variables)
    trained = {self._key(v) for v in variables}
    for variable in (v for tie in self.plan.ties for v in tie):
      if self._key(variable) not in trained:
        raise errors.UsageError(
          f"The plan ties {variable.path}, which is not trained: the plan is "
          "of another model, or the layer was frozen after the plan was made. "
          "Make the plan of the layers that this optimizer trains."
        )
    if not self.inner_optimizer.built:
      self.inner_optimizer.build(variables)
    # Past __setattr__: TensorFlow would track the model as a part of this.
    self.__dict__["_trainable_variables"] = variables
    self.built = True
    if self.phase == SHARED:
      self._require_alike()
      if not self.batches:
        self._tie_weights()

  def _require_alike(self) -> None:
    """Raises if the variables of a tie would not get the same update."""
    inner = self.inner_optimizer
    rates = (inner.weight_decay, getattr(inner, "adam_weight_decay", None))
    rules = [getattr(inner, "_should_use_adamw", None)]  # Of Muon.
    if any(rate is not None for rate in rates):
      rules.append(inner._use_weight_decay)  # pylint: disable=protected-access
    for tie in self.plan.ties:
      for rule in filter(None, rules):
        if len({rule(variable) for variable in tie}) > 1:
          raise errors.UsageError(
            f"{type(inner).__name__} decays or adapts some weights of the tie "
            f"of {tie[0].path} and not others, so they could not stay equal. "
            "Exclude variables by names that occur in every layer, such as "
            "'bias'."
          )

  def _tie_weights(self) -> None:
    if keras.config.backend() == "tensorflow":
      import tensorflow as tf

      with tf.init_scope():  # Keras may build in the trace of the first step.
        self.plan.tie_weights()
    else:
      self.plan.tie_weights()

  def apply(self, grads, trainable_variables=None) -> None:
    """Makes one update: Algorithm 1, lines 4 to 6."""
    grads = list(grads)
    if not grads:
      return
    if trainable_variables is not None:
      trainable_variables = list(trainable_variables)
      if not self.built:
        self.build(trainable_variables)
    self.compiled_phase = self.phase
    if self.built and self.compiled_phase == SHARED:
      variables = trainable_variables or self._trainable_variables
      grads = self._mean_over_ties(grads, variables)
    self.inner_optimizer.apply(grads, trainable_variables)

  def _mean_over_ties(self, grads: list[Any], variables) -> list[Any]:
    """Replaces tied gradients by the mean over their tie, until tau."""
    ops = keras.ops
    is_shared = ops.equal(self._untied_at, _NOT_YET)
    if self.untie_step is not None:
      is_early = ops.less(self.inner_optimizer.iterations, self.untie_step)
      is_shared = ops.logical_and(is_shared, is_early)
    place = {self._key(v): i for i, v in enumerate(variables)}
    for tie in self.plan.ties:
      places = [place[self._key(v)] for v in tie if self._key(v) in place]
      if places and len(places) < len(tie):
        raise errors.UsageError(
          f"{len(places)} of the {len(tie)} variables tied to {tie[0].path} "
          "are trained: the others were frozen after the plan was made. Freeze "
          "all of the tied layers, or none."
        )
      # Sparse gradients become dense here: under momentum this differs from a
      # sparse update.
      own = {
        i: ops.convert_to_tensor(grads[i])
        for i in places
        if grads[i] is not None
      }
      if not own:
        continue
      # One op: TensorFlow orders a chain of additions by the names of the
      # layers, and with it the last bit. A variable that the loss does not
      # reach has a zero gradient; it must not change the divisor.
      mean = ops.sum(ops.stack(list(own.values())), axis=0) / len(tie)
      for i in places:
        rest = own[i] if i in own else ops.zeros_like(mean)
        grads[i] = ops.where(is_shared, mean, rest)
    return grads

  def _key(self, variable):
    return self.inner_optimizer._var_key(variable)  # pylint: disable=protected-access

  @property
  def variables(self):
    return [self._untied_at, *self.inner_optimizer.variables]

  # Saving. The inner optimizer is saved beside this one, as its child.

  def save_own_variables(self, store) -> None:
    store["untied_at"] = keras.ops.convert_to_numpy(self._untied_at)

  def load_own_variables(self, store) -> None:
    if "untied_at" not in list(store.keys()):
      warnings.warn(
        "The saved optimizer did not share weights: its phase is not loaded.",
        stacklevel=2,
      )
    elif self.built:  # If not, Keras loads no state of the inner one either.
      self._untied_at.assign(store["untied_at"])

  def set_weights(self, weights) -> None:
    if not self.built:
      raise errors.UsageError(
        "You are calling set_weights of an optimizer that has no variables "
        "yet: call optimizer.build(model.trainable_variables) first."
      )
    for variable, value in zip(self.variables, weights, strict=True):
      variable.assign(value)

  def get_config(self) -> dict[str, Any]:
    plan = self._plan
    if isinstance(plan, plan_lib.SharingPlan):
      plan = plan_lib.PlanConfig.of(plan, self._trainable_variables)
    return {
      "name": self.name,
      "inner_optimizer": keras.saving.serialize_keras_object(
        self.inner_optimizer
      ),
      "plan": dataclasses.asdict(plan),
      "untie_step": self.untie_step,
    }

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Makes the optimizer again; its plan is resolved when it is built."""
    config = dict(config)
    inner = keras.saving.deserialize_keras_object(
      config.pop("inner_optimizer"), custom_objects=custom_objects
    )
    plan = plan_lib.PlanConfig(**config.pop("plan"))
    return cls(inner, plan, **config)

  # The rest makes the wrapper look like the optimizer that it wraps.

  def __getattr__(self, name: str):
    inner = self.__dict__.get("inner_optimizer")
    if inner is None:  # The base class is being initialized.
      raise AttributeError(name)
    return getattr(inner, name)

  def __setattr__(self, name: str, value) -> None:
    inner = self.__dict__.get("inner_optimizer")
    is_own = inner is None or name.startswith("_") or name in _OWN
    if is_own or not hasattr(inner, name):
      super().__setattr__(name, value)
    else:
      setattr(inner, name, value)

  @property
  def iterations(self):
    return self.inner_optimizer.iterations

  @property
  def learning_rate(self):
    return self.inner_optimizer.learning_rate

  def scale_loss(self, loss):
    return self.inner_optimizer.scale_loss(loss)

  def exclude_from_weight_decay(self, var_list=None, var_names=None) -> None:
    self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

  def finalize_variable_values(self, var_list) -> None:
    self.inner_optimizer.finalize_variable_values(var_list)
