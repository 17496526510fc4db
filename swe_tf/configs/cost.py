"""What a pre-training run costs, from its config alone.

Closed formulas for each phase of the run's method. The tests check them against
the real model, and `docs/tpu_compiler.md` against the TPU compiler's report.
They count a BERT of the encoder's size.
"""

import contextlib
import dataclasses
import functools
from typing import Any

import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import task_factory
from official.core import train_utils
from swe_tf import errors
from swe_tf.data.prepare import manifest
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import slots as slots_lib

_FLOAT = 4  # Weights, slots and gradients are float32, even under bfloat16.


@dataclasses.dataclass(frozen=True)
class PhaseCost:
  """The cost of one step in one phase; bytes are per replica.

  Every layer has its own weights, tied or not, applied or not: layers that few
  loops leave out, or that a model grows deeper into, exist from the first step
  on. Only a model that grows wider starts small.
  """

  steps: int
  parameters: int  # Of the model that the phase trains, including tied ones.
  flops_per_step: int  # Of the matrix products, over all replicas.
  all_reduce_bytes: int  # Payload of the gradients' all-reduce.
  weight_bytes: int
  optimizer_bytes: int  # The optimizer's slots.


@dataclasses.dataclass(frozen=True)
class Cost:
  """The cost of a run: `units` is `AxB`, B units of A layers."""

  units: str
  parameters: int
  tied_parameters: int  # In tied blocks, biases and norms included.
  distinct_parameters: int  # Distinct while weights are shared.
  flops_per_step: int  # Of the whole model, over all replicas.
  tokens_per_step: int
  train_steps: int
  shared_steps: int
  phases: dict[str, PhaseCost]  # By name, first to last.

  @property
  def shared_fraction(self) -> float:
    return self.shared_steps / self.train_steps

  @property
  def tokens(self) -> int:
    return self.train_steps * self.tokens_per_step

  @property
  def flops(self) -> int:
    return sum(p.steps * p.flops_per_step for p in self.phases.values())


def predictions_per_sequence(train_data: cfg.DataConfig) -> int:
  return train_data.max_predictions_per_seq or manifest.max_predictions(
    train_data.seq_length, train_data.masking_rate
  )


def _tokens_per_step(config: cfg.ExperimentConfig) -> int:
  data = config.task.train_data
  return data.global_batch_size * data.seq_length


def tokens(config: cfg.ExperimentConfig) -> int:
  """Returns the tokens that the whole run reads, including repeated ones."""
  return config.trainer.train_steps * _tokens_per_step(config)


def _steps_and_flops(config: cfg.ExperimentConfig) -> list[tuple[int, int]]:
  """Returns the steps of each phase, and the FLOPs of one of them."""
  # Tied layers are computed one by one, so tau does not matter.
  resolved, encoder = catalog.resolve(config), _encoder(config)
  if resolved.sharing.mode == catalog.SWE and resolved.untie_step is None:
    # Such a rule applies all layers in every step.
    phases = catalog.never_shared(resolved, encoder.size)
  else:
    phases = catalog.find(resolved).phases(resolved, encoder.size)
  return [(p.steps, _flops_per_step(config, p.size)) for p in phases]


def training_flops(config: cfg.ExperimentConfig) -> int:
  """Returns the FLOPs of the matrix products of the whole run."""
  return sum(steps * flops for steps, flops in _steps_and_flops(config))


def steps_left(config: cfg.ExperimentConfig, step: int) -> float:
  """Returns what is left after a step, in steps as costly as the last one."""
  left, flops_now, begin = 0.0, 0, 0
  for steps, flops in _steps_and_flops(config):
    end = begin + steps
    if begin < step or not flops_now:
      flops_now = flops
    left += max(0, end - max(step, begin)) * flops
    begin = end
  return left / flops_now


def of_methods(config: cfg.ExperimentConfig) -> dict[str, int]:
  """Returns the FLOPs of the run with other methods, by their names.

  Recipes and growth that do not fit the number of layers are left out.
  """
  none = {"mode": catalog.NONE}
  choices: dict[str, tuple[dict[str, Any], str]] = {
    "baseline": (none, catalog.NONE),
    "swe": ({}, catalog.NONE),
    **{name: ({"recipe": name}, catalog.NONE) for name in config_lib.RECIPES},
    "stacking": (none, "stacking"),
  }
  found = {}
  for name, (sharing, growth) in choices.items():
    other = config.replace()
    # Whole, so that nothing of this run's own method is left.
    other.task.sharing = config_lib.SharingConfig(**sharing)
    other.task.growth = config_lib.GrowthConfig(method=growth)
    with contextlib.suppress(errors.UsageError):
      layers = catalog.resolve(other).num_layers
      config_lib.apply_recipe(other.task.sharing, layers)
      catalog.check(other)
      found[name] = training_flops(other)
  return found


def _encoder(config: cfg.ExperimentConfig) -> registry.Encoder:
  return registry.require_encoder(config.task.as_dict())


def _flops_per_step(config: cfg.ExperimentConfig, size: sizes.Size) -> int:
  data = config.task.train_data
  return sizes.training_flops(
    size,
    data.global_batch_size,
    data.seq_length,
    predictions_per_sequence(data),
    _encoder(config).vocab_size or 0,
  )


def _parameter_count(encoder: registry.Encoder, size: sizes.Size) -> int:
  return sizes.parameter_count(
    size,
    encoder.vocab_size or 0,
    encoder.positions or 0,
    encoder.params.get("type_vocab_size", 0),
  )


def _optimizer_and_slots(config: cfg.ExperimentConfig):
  """Returns the optimizer, and how many slots it makes for each parameter."""
  task = task_factory.get_task(config.task)
  optimizer = train_utils.create_optimizer(task, config)
  # A matrix: some optimizers keep factors of it.
  variable = tf.Variable(tf.zeros([64, 64]))
  optimizer.apply_gradients([(tf.zeros_like(variable), variable)])
  made = slots_lib.slots_of(optimizer, variable).values()
  return optimizer, sum(slot.shape.num_elements() for slot in made) / 64**2


def weight_bytes(config: cfg.ExperimentConfig) -> int:
  """Returns the bytes of all weights; runs no TensorFlow."""
  encoder = _encoder(config)
  return _FLOAT * _parameter_count(encoder, encoder.size)


def memory(config: cfg.ExperimentConfig) -> tuple[int, int]:
  """Returns the bytes of weights and slots, in the phase that has most."""
  if hasattr(config.task, "sharing"):
    phases = estimate(config).phases.values()
    return max(((p.weight_bytes, p.optimizer_bytes) for p in phases), key=sum)
  weights = weight_bytes(config)
  return weights, round(_optimizer_and_slots(config)[1] * weights)


def estimate(config: cfg.ExperimentConfig) -> Cost:
  """Returns the cost of an experiment that has `task.sharing`."""
  resolved, encoder = catalog.resolve(config), _encoder(config)
  phases = catalog.find(resolved).phases(resolved, encoder.size)
  optimizer, slots = _optimizer_and_slots(config)
  count = functools.partial(_parameter_count, encoder)

  def cost_of(phase: catalog.Phase) -> PhaseCost:
    size, parameters = phase.size, count(phase.size)
    branches = size.num_layers - phase.distinct_layers
    updated = parameters - branches * sizes.block_parameter_count(size)
    # Without next-sentence prediction the pooler is not trained.
    if not config.task.train_data.use_next_sentence_label:
      updated -= sizes.pooler_parameter_count(size)
    # A new optimizer makes all its slots at once, even those of branches.
    with_slots = updated if slots_lib.is_legacy(optimizer) else parameters
    in_memory = dataclasses.replace(size, num_layers=encoder.size.num_layers)
    return PhaseCost(
      steps=phase.steps,
      parameters=parameters,
      flops_per_step=_flops_per_step(config, size),
      all_reduce_bytes=_FLOAT * updated,
      weight_bytes=_FLOAT * count(in_memory),
      optimizer_bytes=round(_FLOAT * slots * with_slots),
    )

  size, unit = encoder.size, config.task.sharing.unit_size
  parameters, block = count(size), sizes.block_parameter_count(size)
  shared_steps = 0
  if config.task.growth.method == catalog.NONE:  # Else layers are missing.
    shared_steps = sum(
      p.steps for p in phases if p.distinct_layers < size.num_layers
    )
  if config.task.sharing.mode == catalog.NONE:
    unit = size.num_layers
  return Cost(
    units=f"{unit}x{size.num_layers // unit}",
    parameters=parameters,
    tied_parameters=size.num_layers * block,
    distinct_parameters=parameters - (size.num_layers - unit) * block,
    flops_per_step=_flops_per_step(config, size),
    tokens_per_step=_tokens_per_step(config),
    train_steps=config.trainer.train_steps,
    shared_steps=shared_steps,
    phases={phase.name: cost_of(phase) for phase in phases},
  )
