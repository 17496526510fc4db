"""What a pre-training run costs, from its config alone.

Closed formulas, checked in the tests against the model that is built and in
`docs/performance.md` against what the TPU compiler reports.
"""

import dataclasses

import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import task_factory
from official.core import train_utils
from swe_tf import errors
from swe_tf.doctor import steps
from swe_tf.methods import growth
from swe_tf.modeling import sizes
from swe_tf.sharing import schedule
from swe_tf.sharing import slots as slots_lib
from swe_tf.tasks import sharing

_FLOAT = 4  # Weights, slots and gradients are float32, also under bfloat16.


@dataclasses.dataclass(frozen=True)
class PhaseCost:
  """What one step costs in one phase, for each replica.

  Attributes:
    steps: How many steps the phase has.
    all_reduce_bytes: Payload of the all-reduce of the gradients.
    weight_bytes: Memory of the weights. All layers have theirs in both phases.
    optimizer_bytes: Memory of the optimizer's slots.
  """

  steps: int
  all_reduce_bytes: int
  weight_bytes: int
  optimizer_bytes: int


@dataclasses.dataclass(frozen=True)
class Cost:
  """What a run costs.

  Attributes:
    units: `AxB`.
    parameters: All of them.
    tied_parameters: Those in blocks.
    distinct_parameters: Those that differ while shared.
    flops_per_step: Of the matrix products, all replicas together. The same in
      both phases.
    tokens_per_step: Of the global batch.
    train_steps: How many steps the run has.
    phases: `shared` and `unshared`, as far as the run has them.
  """

  units: str
  parameters: int
  tied_parameters: int
  distinct_parameters: int
  flops_per_step: int
  tokens_per_step: int
  train_steps: int
  phases: dict[str, PhaseCost]

  @property
  def shared_fraction(self) -> float:
    shared = self.phases.get("shared")
    return shared.steps / self.train_steps if shared else 0.0


def _size(config: cfg.ExperimentConfig) -> sizes.Size:
  encoder = config.task.model.encoder.get()
  return sizes.Size(
    num_layers=encoder.num_layers,
    hidden_size=encoder.hidden_size,
    num_attention_heads=encoder.num_attention_heads,
    intermediate_size=encoder.intermediate_size,
  )


def _check_foreseeable(config: cfg.ExperimentConfig) -> None:
  """Raises if what a step costs when is known only once the run has run."""
  options = config.task.sharing
  if options.mode == sharing.SWE and options.rule != sharing.FIXED:
    raise errors.UsageError(
      f"task.sharing.rule is {options.rule!r}, and this is the cost of the "
      "fixed rule only. Ask with task.sharing.rule=fixed, for an "
      "untie_fraction that you expect."
    )
  if config.task.growth.method != growth.NONE:
    raise errors.UsageError(
      f"task.growth.method is {config.task.growth.method!r}, and this is the "
      "cost of a model that does not grow. Ask with "
      "task.growth.method=none for that of the last phase."
    )


def _untie_step(config: cfg.ExperimentConfig) -> int:
  options = config.task.sharing
  if options.mode != sharing.SWE:
    return 0
  return schedule.resolve_untie_step(
    config.trainer.train_steps,
    untie_step=options.untie_step,
    untie_fraction=options.untie_fraction,
  )


def _slots_per_parameter(optimizer) -> float:
  """Counts the slots that the optimizer makes for a variable."""
  variable = tf.Variable(tf.zeros([64, 64]))
  optimizer.apply_gradients([(tf.zeros_like(variable), variable)])
  made = slots_lib.slots_of(optimizer, variable).values()
  return sum(slot.shape.num_elements() for slot in made) / 64**2


def estimate(config: cfg.ExperimentConfig) -> Cost:
  """Returns the cost of an experiment.

  Raises:
    UsageError: If it cannot be told from the config.
  """
  _check_foreseeable(config)
  encoder = config.task.model.encoder.get()
  data = config.task.train_data
  size = _size(config)
  parameters = sizes.parameter_count(
    size,
    encoder.vocab_size,
    encoder.max_position_embeddings,
    encoder.type_vocab_size,
  )
  block = sizes.block_parameter_count(size)
  tied = size.num_layers * block
  unit = config.task.sharing.unit_size
  distinct = parameters - tied + unit * block
  # Without next-sentence prediction nothing is learned in the pooler.
  pooler = (
    0 if data.use_next_sentence_label else sizes.pooler_parameter_count(size)
  )
  task = task_factory.get_task(config.task)
  optimizer = train_utils.create_optimizer(task, config)
  slots = _slots_per_parameter(optimizer)
  legacy = slots_lib.is_legacy(optimizer)
  train_steps, tau = config.trainer.train_steps, _untie_step(config)

  def phase(count: int, updated: int) -> PhaseCost:
    # A new optimizer makes all its slots at once, those of branches too.
    with_slots = (updated - pooler) if legacy else parameters
    return PhaseCost(
      steps=count,
      all_reduce_bytes=_FLOAT * (updated - pooler),
      weight_bytes=_FLOAT * parameters,
      optimizer_bytes=round(_FLOAT * slots * with_slots),
    )

  phases = {
    "shared": phase(tau, distinct),
    "unshared": phase(train_steps - tau, parameters),
  }
  return Cost(
    units=f"{unit}x{size.num_layers // unit}",
    parameters=parameters,
    tied_parameters=tied,
    distinct_parameters=distinct,
    flops_per_step=sizes.training_flops(
      size,
      data.global_batch_size,
      data.seq_length,
      steps.predictions_per_sequence(data),
      encoder.vocab_size,
    ),
    tokens_per_step=data.global_batch_size * data.seq_length,
    train_steps=train_steps,
    phases={name: found for name, found in phases.items() if found.steps},
  )
