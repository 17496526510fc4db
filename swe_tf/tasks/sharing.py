"""What a Model Garden task needs to share weights: config, plan, optimizer.

`SharingTask` is mixed into any task whose model has repeated blocks. It makes
the plan; `swe_tf.sharing` does the rest.
"""

from collections.abc import Sequence
import dataclasses

import tensorflow as tf
import tf_keras

import gin
from official.core import base_task
from official.modeling import optimization
from official.modeling.hyperparams import base_config
from swe_tf import errors
from swe_tf.methods import reparameterize as reparameterization
from swe_tf.methods import stem_branch
from swe_tf.sharing import adaptive
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule
from swe_tf.training import checkpoint
from swe_tf.training import phases

SWE, NONE, REPARAMETERIZE, STEM_BRANCH = MODES = (
  "swe",
  "none",
  "reparameterize",
  "stem_branch",
)
FIXED, STAGED, ADAPTIVE, SPLIT = RULES = (
  "fixed",
  "staged",
  "adaptive",
  "split",
)


@dataclasses.dataclass
class StageConfig(base_config.Config):
  """From which step on units are larger, for `SharingConfig.rule=staged`.

  Attributes:
    unit_size: The number of consecutive layers that form a unit from then on.
    from_fraction: The fraction of `trainer.train_steps` after which it begins.
    from_step: The step after which it begins; wins over the fraction when set.
  """

  unit_size: int = 1
  from_fraction: float = 0.0
  from_step: int | None = None


@dataclasses.dataclass
class SharingConfig(base_config.Config):
  """How block weights are shared.

  Attributes:
    mode: `swe` shares, then unties. `none` is the baseline: the stock update.
      `reparameterize` gives each layer (mean gradient + own gradient) / 2 for
      the whole run (appendix B.1 of the paper). `stem_branch` trains the stem
      and the branches of the paper's Equation 1 for the whole run.
    unit_size: The number of consecutive layers that form a unit.
    untie_fraction: The fraction of `trainer.train_steps` that is shared.
    untie_step: The number of shared steps; wins over the fraction when set.
    rule: When to untie. `fixed` is the paper's: after `untie_step`. `staged`
      goes through `stages` before that. `adaptive` unties when most cosines
      between adjacent units' gradients are below `rho`, `patience` times in a
      row; `split` cuts the stack only between the units that disagree. These
      two have no untie step.
    stages: The stages of `staged`, in order.
    check_interval: How many steps are between two looks at the cosines.
    rho: The cosine below which two units disagree.
    patience: How often in a row.
  """

  mode: str = SWE
  unit_size: int = 1
  untie_fraction: float = 0.1
  untie_step: int | None = None
  rule: str = FIXED
  stages: list[StageConfig] = dataclasses.field(default_factory=list)
  check_interval: int = 1000
  rho: float = 0.5
  patience: int = 3


def make_untie_rule(
  config: SharingConfig, train_steps: int
) -> schedule.UntieRule:
  """Returns the rule of a config.

  Args:
    config: `task.sharing`.
    train_steps: `trainer.train_steps`.

  Raises:
    UsageError: If the config is at fault.
  """
  if config.mode != SWE:
    return schedule.UntieAtStep(0)
  if config.rule in (ADAPTIVE, SPLIT):
    return adaptive.UntieByCorrelation(
      config.check_interval,
      config.rho,
      config.patience,
      split=config.rule == SPLIT,
    )
  tau = schedule.resolve_untie_step(
    train_steps,
    untie_step=config.untie_step,
    untie_fraction=config.untie_fraction,
  )
  if config.rule == FIXED:
    return schedule.UntieAtStep(tau)
  stages = []
  for stage in config.stages:
    if stage.unit_size % config.unit_size:
      raise errors.UsageError(
        f"task.sharing.stages has units of {stage.unit_size} layers, which "
        f"is no multiple of task.sharing.unit_size ({config.unit_size})."
      )
    begin = schedule.resolve_untie_step(
      train_steps,
      untie_step=stage.from_step,
      untie_fraction=stage.from_fraction,
    )
    stages.append((begin, stage.unit_size // config.unit_size))
  return schedule.UntieInStages(tau, stages)


def check_sharing(config: SharingConfig, train_steps: int) -> None:
  """Raises unless `config` can run for `train_steps` steps."""
  for name, value, known in (
    ("mode", config.mode, MODES),
    ("rule", config.rule, RULES),
  ):
    if value not in known:
      raise errors.UsageError(
        f"task.sharing.{name} ({value!r}) must be one of {', '.join(known)}."
      )
  if config.stages and config.rule != STAGED:
    raise errors.UsageError(
      f"task.sharing.stages is set, but task.sharing.rule is "
      f"{config.rule!r}, which has none; set it to {STAGED!r}."
    )
  schedule.resolve_untie_step(
    train_steps,
    untie_step=config.untie_step,
    untie_fraction=config.untie_fraction,
  )
  make_untie_rule(config, train_steps)


@gin.configurable
def find_repeated_blocks(
  model: tf_keras.Model, finder=None
) -> Sequence[tf_keras.layers.Layer]:
  """Returns the repeated blocks of a model, first to last.

  Args:
    model: The model that the task built.
    finder: A function of the model, for an encoder that keeps its blocks
      elsewhere. Bind it in gin: `find_repeated_blocks.finder = @my_finder`.

  Returns:
    The blocks; empty if there are none.
  """
  if finder is not None:
    return list(finder(model))
  encoder = getattr(model, "encoder_network", model)
  return list(getattr(encoder, "transformer_layers", ()))


@gin.configurable
def make_sharing_plan(
  blocks: Sequence[tf_keras.layers.Layer],
  config: SharingConfig,
  unit_size: int | None = None,
) -> plan_lib.SharingPlan:
  """Makes the plan of a model's repeated blocks.

  Args:
    blocks: The repeated blocks, first to last.
    config: `task.sharing`.
    unit_size: Wins over `config.unit_size`; for gin:
      `make_sharing_plan.unit_size = 4`.

  Returns:
    The plan.
  """
  return plan_lib.SharingPlan.from_layers(blocks, unit_size or config.unit_size)


class SharingTask(base_task.Task):
  """A task whose `task_config.sharing` says how blocks share their weights."""

  def build_model(self, *args, **kwargs) -> tf_keras.Model:
    """Builds the model with all its variables, from `task_config.seed`.

    Model Garden builds the heads on the first batch, when the trainer has
    already taken its copy of the variables for EMA, and starts every run from
    other weights.
    """
    tf_keras.utils.set_random_seed(self.task_config.seed)
    model = super().build_model(*args, **kwargs)
    _ = model(model.inputs)
    return model

  def build_sharing_plan(self, model) -> plan_lib.SharingPlan:
    """Returns the ties of the model; none if it has no blocks to share."""
    config = self.task_config.sharing
    blocks = find_repeated_blocks(model)
    if not blocks and config.mode != NONE:
      encoder = getattr(model, "encoder_network", model)
      raise errors.UsageError(
        f"task.sharing.mode is {config.mode!r}, but "
        f"{type(encoder).__name__} has no `transformer_layers` to share. "
        "Bind `find_repeated_blocks.finder` in gin to a function that "
        "returns them, or set task.sharing.mode=none."
      )
    if not blocks:
      return plan_lib.SharingPlan((), unit_size=1, num_units=1)
    return make_sharing_plan(blocks, config)

  def untie_rule(self, train_steps: int) -> schedule.UntieRule:
    """Returns the rule of the config."""
    return make_untie_rule(self.task_config.sharing, train_steps)

  def build_phases(self, model, optimizer, rule, config) -> phases.Phases:
    """Returns the phases of the configured method."""
    del model, config
    return phases.SharingPhases(optimizer, rule)

  def wrap_optimizer(self, inner, plan, rule, config):
    """Puts the configured method around the bare optimizer."""
    mode = self.task_config.sharing.mode
    if mode == REPARAMETERIZE:
      return reparameterization.ReparameterizedOptimizer(inner, plan)
    if mode == STEM_BRANCH:
      return stem_branch.StemBranchOptimizer(inner, plan)
    return optimizer_lib.SharedWeightsOptimizer(
      inner,
      plan,
      untie_step=getattr(rule, "untie_step", None),
      cosine_interval=(rule.cosine_interval or config.trainer.summary_interval),
    )

  @classmethod
  def create_optimizer(
    cls,
    optimizer_config: optimization.OptimizationConfig,
    runtime_config=None,
    dp_config=None,
  ):
    """Makes the bare optimizer: the trainer adds EMA and loss scaling."""
    del runtime_config
    bare = dataclasses.replace(optimizer_config, ema=None)
    return super().create_optimizer(bare, dp_config=dp_config)

  def initialize(self, model: tf_keras.Model) -> None:
    """Loads `init_checkpoint`, after a check that it fits."""
    path = self.task_config.init_checkpoint
    if path and tf.io.gfile.isdir(path):
      path = tf.train.latest_checkpoint(path)
    if self.task_config.init_checkpoint and not path:
      raise errors.UsageError(
        f"task.init_checkpoint ({self.task_config.init_checkpoint}) is a "
        "directory without a checkpoint."
      )
    if path:
      checkpoint.check_fits(path, **model.checkpoint_items)
    super().initialize(model)
