"""What a Model Garden task needs to share weights: config, plan, optimizer.

`SharingTask` is mixed into any task whose model has repeated blocks. It makes
the plan; `swe_tf.sharing` does the rest.
"""

import dataclasses
from typing import Optional, Sequence

import gin
import tensorflow as tf
import tf_keras

from official.core import base_task
from official.modeling import optimization
from official.modeling.hyperparams import base_config
from swe_tf import errors
from swe_tf.baselines import reparameterization
from swe_tf.sharing import checkpoint
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import plan as plan_lib
from swe_tf.sharing import schedule

SWE, NONE, REPARAMETERIZE = MODES = ("swe", "none", "reparameterize")


@dataclasses.dataclass
class SharingConfig(base_config.Config):
  """How block weights are shared.

  Attributes:
    mode: `swe` shares, then unties. `none` is the baseline: the stock update.
      `reparameterize` gives each layer (mean gradient + own gradient) / 2 for
      the whole run (appendix B.1 of the paper).
    unit_size: The number of consecutive layers that form a unit.
    untie_fraction: The fraction of `trainer.train_steps` that is shared.
    untie_step: The number of shared steps; wins over the fraction when set.
  """

  mode: str = SWE
  unit_size: int = 1
  untie_fraction: float = 0.1
  untie_step: Optional[int] = None


def check_sharing(config: SharingConfig, train_steps: int) -> None:
  """Raises unless `config` can run for `train_steps` steps."""
  if config.mode not in MODES:
    raise errors.UsageError(
        f"task.sharing.mode ({config.mode!r}) must be one of "
        f"{', '.join(MODES)}."
    )
  schedule.resolve_untie_step(
      train_steps,
      untie_step=config.untie_step,
      untie_fraction=config.untie_fraction,
  )


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
    unit_size: Optional[int] = None,
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
    """Returns the rule of the config: untie at tau."""
    config = self.task_config.sharing
    if config.mode != SWE:
      return schedule.UntieAtStep(0)
    return schedule.UntieAtStep(
        schedule.resolve_untie_step(
            train_steps,
            untie_step=config.untie_step,
            untie_fraction=config.untie_fraction,
        )
    )

  def wrap_optimizer(self, inner, plan, rule, config):
    """Puts the configured method around the bare optimizer."""
    if self.task_config.sharing.mode == REPARAMETERIZE:
      return reparameterization.ReparameterizedOptimizer(inner, plan)
    return optimizer_lib.SharedWeightsOptimizer(
        inner,
        plan,
        untie_step=getattr(rule, "untie_step", None),
        cosine_interval=config.trainer.summary_interval,
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
