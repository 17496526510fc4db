"""What differs between optimizers: slots (momenta and the like), and calls.

TF-Keras has two families of optimizers. A legacy one (Model Garden's AdamW and
LAMB) keeps a dictionary by variable and makes a slot when it is first needed.
A new one keeps lists in the order of the variables, all made by `build`. What
is special to one of them is here.
"""

from collections.abc import Iterable, Sequence

import tensorflow as tf
import tf_keras

from swe_tf import errors
from swe_tf.sharing import plan


def is_legacy(optimizer) -> bool:
  """Whether a variable gets its slots with its first update, not with all."""
  return isinstance(optimizer, tf_keras.optimizers.legacy.Optimizer)


def check_optimizer(optimizer, what: str) -> None:
  """Raises for an optimizer with which sharing would not be Algorithm 1."""
  if not is_legacy(optimizer):
    plan.require_keras(optimizer, tf_keras.optimizers.Optimizer, what)
  if isinstance(optimizer, tf_keras.optimizers.Nadam):
    raise errors.UsageError(
      f"{what} is a tf_keras.optimizers.Nadam, which counts its updates in "
      "Python: a compiled step counts only once and trains with other rates. "
      "Use tf_keras.optimizers.legacy.Nadam."
    )
  stock = tf_keras.optimizers.legacy.SGD().gradient_aggregator
  changed = getattr(optimizer, "gradient_aggregator", stock) is not stock
  if changed or getattr(optimizer, "gradient_transformers", None):
    raise errors.UsageError(
      f"{what} has gradient_transformers or a gradient_aggregator of its own. "
      "They would see each tie once, not once for each of its variables, and "
      "train a different model from Algorithm 1. Transform the gradients in "
      "the train step instead."
    )


def check_alike(optimizer, variables: Sequence[tf.Variable]) -> None:
  """Raises if the variables of a tie would not get the same update."""
  if getattr(optimizer, "weight_decay", True) is None:
    return
  for name in (
    "_do_use_weight_decay",
    "_use_weight_decay",
    "_do_layer_adaptation",
  ):
    rule = getattr(optimizer, name, None)
    legacy = is_legacy(optimizer)
    if rule and len({rule(v.name if legacy else v) for v in variables}) > 1:
      raise errors.UsageError(
        f"{type(optimizer).__name__} decays or adapts some weights of the tie "
        f"of {variables[0].name} and not others, so they could not stay equal. "
        "Exclude variables from weight decay by names that occur in every "
        "layer, such as 'bias'."
      )


def all_reduce(optimizer, grads_and_vars):
  """Sums gradients over the replicas, as `optimizer` itself would."""
  if is_legacy(optimizer):
    return optimizer._aggregate_gradients(grads_and_vars)  # pylint: disable=protected-access
  return optimizer.aggregate_gradients(grads_and_vars)


def clip_by_value(optimizer, grads_and_vars):
  """Applies `clipvalue`, which in a legacy optimizer precedes other clipping.

  A new optimizer takes one kind of clipping only.
  """
  if is_legacy(optimizer) and optimizer.clipvalue is not None:
    return optimizer._clipvalue_fn(grads_and_vars)  # pylint: disable=protected-access
  return grads_and_vars


def all_variables(optimizer) -> Sequence[tf.Variable]:
  """Returns every variable of the optimizer, `iterations` among them."""
  variables = optimizer.variables
  return list(variables() if callable(variables) else variables)


def slots_of(optimizer, variable: tf.Variable) -> dict[str, tf.Variable]:
  """Returns the slots of `variable` by name. They must exist."""
  if is_legacy(optimizer):
    names = optimizer.get_slot_names()
    return {name: optimizer.get_slot(variable, name) for name in names}
  index = optimizer._index_dict[optimizer._var_key(variable)]  # pylint: disable=protected-access
  return {name: slots[index] for name, slots in _slot_lists(optimizer).items()}


def _slot_lists(optimizer) -> dict[str, Sequence[tf.Variable]]:
  """The lists of a new optimizer that hold one slot per variable."""
  num_variables = len(optimizer._index_dict)  # pylint: disable=protected-access
  lists: dict[str, Sequence[tf.Variable]] = {
    name: value
    for name, value in vars(optimizer).items()
    if isinstance(value, (list, tuple))
    and name != "_variables"
    and len(value) == num_variables
    and all(isinstance(slot, tf.Variable) for slot in value)
  }
  known = {id(slot) for slots in lists.values() for slot in slots}
  for variable in all_variables(optimizer):  # `iterations` is a scalar.
    if id(variable) not in known and variable.shape.rank:
      raise errors.UsageError(
        f"{type(optimizer).__name__} keeps {variable.name} outside of its "
        "lists of slots, so it cannot be copied when the weights are untied. "
        "Use a tf_keras optimizer that keeps one list for each kind of slot."
      )
  return lists


def has_slots(optimizer, variable: tf.Variable) -> bool:
  """Returns whether the optimizer has made the slots of `variable`."""
  if is_legacy(optimizer):
    return plan.variable_key(variable) in optimizer._slots  # pylint: disable=protected-access
  made = getattr(optimizer, "_index_dict", {})
  return optimizer._var_key(variable) in made  # pylint: disable=protected-access


def can_have_slots(optimizer) -> bool:
  """Whether slots are there or can be made; a new optimizer must be built."""
  return is_legacy(optimizer) or bool(getattr(optimizer, "_built", False))


def create_slots(optimizer, variables: Iterable[tf.Variable]) -> None:
  """Makes the slots of `variables` in a legacy optimizer, if missing."""
  optimizer._create_all_weights(list(variables))  # pylint: disable=protected-access


def copy_slots(
  optimizer, pairs: Iterable[tuple[tf.Variable, tf.Variable]]
) -> None:
  pairs = list(pairs)
  if pairs and is_legacy(optimizer):  # A legacy Nadam takes no empty list.
    create_slots(optimizer, [v for pair in pairs for v in pair])
  for source, target in pairs:
    targets = slots_of(optimizer, target)
    for name, slot in slots_of(optimizer, source).items():
      targets[name].assign(slot.read_value())


def drop_slots(optimizer, variables: Iterable[tf.Variable]) -> None:
  """Frees the slots of variables that are no longer trained. Runs eagerly.

  For a legacy optimizer only: the lists of a new one cannot have gaps.
  """
  dropped: set[int] = set()
  for variable in variables:
    slots = optimizer._slots.pop(plan.variable_key(variable), {})  # pylint: disable=protected-access
    dropped.update(map(id, slots.values()))
  optimizer._weights = [  # pylint: disable=protected-access
    weight for weight in all_variables(optimizer) if id(weight) not in dropped
  ]
