"""Net2Net: train a model of half the width, then double every unit.

Chen et al. 2015; appendix B.1 of the paper. Hidden units, heads, and the units
of feed-forward blocks and embeddings are each duplicated; the size of a head
stays. Whatever reads a duplicated unit halves its weights, so the wide model
computes what the narrow one did. The last layer norm before the logits is
halved too: the embedding table, which is tied to the logits and cannot be
halved, reads each of its units twice. The card: docs/cards/net2net.md.
"""

import tensorflow as tf
import tf_keras

from official.nlp.configs import bert
from swe_tf import errors
from swe_tf.methods import growth
from swe_tf.modeling import registry
from swe_tf.sharing import plan
from swe_tf.sharing import slots
from swe_tf.training import phases

# Each slot scales with this power of the gradient. Any other slot of an
# optimizer starts from scratch, as for a new variable.
_POWERS = {"m": 1, "momentum": 1, "v": 2, "vhat": 2}
_HALVES = (
  "hidden_size",
  "num_attention_heads",
  "intermediate_size",
  "embedding_size",
)


def halve_width(config: bert.PretrainerConfig) -> bert.PretrainerConfig:
  """Returns the narrow model's config; classification heads are unchanged."""
  encoder = registry.require_encoder({"model": config.as_dict()})
  params = encoder.params
  half = {name: params[name] // 2 for name in _HALVES if params.get(name)}
  return config.replace(**encoder.overrides(**half)["model"])


def doubled_axes(narrow: tf.Variable, wide: tf.Variable) -> tuple[int, ...]:
  """Returns the axes along which `wide` has every unit twice."""
  return tuple(
    axis for axis, (n, w) in enumerate(zip(narrow.shape, wide.shape)) if n != w
  )


def _tile(value: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
  return tf.tile(value, [1 + (i in axes) for i in range(value.shape.rank)])


def _is_kernel(variable: tf.Variable) -> bool:
  # All kernels read units along their first axis: [units, units] in dense
  # layers, [units, heads, size] for queries, keys and values, [heads, size,
  # units] after attention.
  return "kernel" in variable.name.split("/")[-1]


def weight_factor(wide: tf.Variable, axes, before_logits: bool) -> float:
  """Returns the factor to multiply a duplicated weight by.

  The weight is doubled along `axes`; it may belong to the norm before logits.
  """
  reads_twice = _is_kernel(wide) and 0 in axes
  return 0.5 if reads_twice or before_logits else 1.0


def gradient_factor(wide: tf.Variable, axes, before_logits: bool) -> float:
  """Returns the ratio of a duplicated weight's gradient to the narrow model's.

  The two copies of a unit split the gradient that the unit had, so whatever
  makes duplicated units gets half of it. Before the logits each copy gets all
  of it, which its halved weights then pass on as half. See `weight_factor`.
  """
  makes_twice = any(axis or not _is_kernel(wide) for axis in axes)
  return 0.5 if makes_twice and not before_logits else 1.0


def widen(
  narrow: tf_keras.Model,
  wide: tf_keras.Model,
  optimizer=None,
  *,
  noise: float = 0.0,
  seed: int = 0,
) -> None:
  """Makes `wide` compute what `narrow` computes. Runs eagerly.

  The moments of the legacy optimizer become those of the gradients that the
  wide model would have had. `config.GrowthConfig` explains the noise.
  """
  head = {plan.variable_key(v) for v in wide.masked_lm.layer_norm.variables}
  for i, (source, target) in enumerate(zip(narrow.variables, wide.variables)):
    axes = doubled_axes(source, target)
    before_logits = plan.variable_key(target) in head
    value = _tile(source.read_value(), axes)
    value *= weight_factor(target, axes, before_logits)
    if axes and noise:
      drawn = tf.random.stateless_normal(
        value.shape, seed=(seed, i), dtype=value.dtype
      )
      value += noise * tf.math.reduce_std(value) * drawn
    target.assign(value)
    if optimizer is None or not slots.has_slots(optimizer, source):
      continue
    factor = gradient_factor(target, axes, before_logits)
    slots.create_slots(optimizer, [target])
    targets = slots.slots_of(optimizer, target)
    for name, slot in slots.slots_of(optimizer, source).items():
      if name in _POWERS:
        moment = _tile(slot.read_value(), axes) * factor ** _POWERS[name]
        targets[name].assign(moment)


class WideningPhases(growth.GrowthPhases):
  """Half the width, then all of it."""

  def __init__(self, ingredients: phases.Ingredients, steps: list[int]):
    task, self._wide = ingredients.task, ingredients.model
    narrow = task.build_model(halve_width(task.task_config.model))
    widths = [
      m.encoder_network.get_config()["hidden_size"]
      for m in (narrow, self._wide)
    ]
    super().__init__(ingredients.optimizer, steps, widths)
    self._saved.narrow = narrow
    self._config = task.task_config

  @property
  def name(self) -> str:
    return f"width {self.size} of {self._sizes[-1]}"

  @property
  def model(self) -> tf_keras.Model | None:
    return None if self.stage else self._saved.narrow

  def grow(self, stage: int) -> str:
    widen(
      self._saved.narrow,
      self._wide,
      self._optimizer,
      noise=self._config.growth.noise,
      seed=self._config.seed,
    )
    return f"widened {self._sizes[stage]} to {self._sizes[stage + 1]}"

  def change_if_due(self, step: int) -> str | None:
    """See base class; frees the narrow model once it is no longer trained."""
    done = super().change_if_due(step)
    if self.stage and hasattr(self._saved, "narrow"):
      slots.drop_slots(self._optimizer, self._saved.narrow.variables)
      del self._saved.narrow
    return done

  def on_rollback(self) -> None:
    if not self.stage and not hasattr(self._saved, "narrow"):
      raise errors.Failed(
        "the last checkpoint is from before the model was widened, and the "
        "narrow model is already freed; run the same command again."
      )


growth.register(
  "net2net",
  WideningPhases,
  halves=_HALVES,
  fractions=(0.1,),  # Appendix B.1: 50k of 500k steps.
)
