"""What a Model Garden task needs to be trained by a method.

Mix `SharingTask` into any task whose model has repeated blocks;
`swe_tf.methods` does the rest.
"""

import dataclasses

import tf_keras

from official.core import base_task
from official.modeling import optimization
from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import choose
from swe_tf.sharing import wrapper
from swe_tf.training import checkpoint
from swe_tf.training import phases
from swe_tf.training import resume


class SharingTask(base_task.Task):
  """A task whose config chooses a method: a `phases.TaskWithMethod`."""

  _has_method = False

  def build_model(self, *args, **kwargs) -> tf_keras.Model:
    """Builds the model with all its variables, from `task_config.seed`.

    Model Garden builds the heads on the first batch, when the trainer has
    already copied the variables for EMA. It also starts every run from other
    weights, and starts dropout over when a run is resumed.
    """
    tf_keras.utils.set_random_seed(self.task_config.seed)
    with resume.dropout_with_state():
      model = super().build_model(*args, **kwargs)
      _ = model(model.inputs)
    return model

  def apply_method(self, ingredients: phases.Ingredients) -> phases.Training:
    """Applies the method that the config chooses."""
    self._has_method = True
    return choose.apply(ingredients)

  def require_method(self, optimizer) -> None:
    """Raises if the config chooses a method that was not applied."""
    sharing, growth = self.task_config.sharing, self.task_config.growth
    is_baseline = sharing.mode == growth.method == catalog.NONE
    if not (is_baseline or self._has_method or wrapper.find_wrapper(optimizer)):
      raise errors.UsageError(
        "task.sharing or task.growth is set, but the trainer does not support "
        "it, so nothing would be shared or grow. Run `python -m swe_tf.train`, "
        "or give the stock driver the gin file gin/swe.gin."
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
    """Loads `init_checkpoint`, after checking that it fits."""
    checkpoint.check_init_checkpoint(
      self.task_config.init_checkpoint, **model.checkpoint_items
    )
    with checkpoint.readable(self.task_config.init_checkpoint):
      super().initialize(model)
