"""Sharing in plain Keras: unties in the middle of `model.fit`.

For Model Garden experiments see `swe_tf.training.trainer` instead.
"""

from absl import logging
import tf_keras

from swe_tf import errors
from swe_tf.sharing import keras_family
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.sharing import wrapper


class UntieCallback(tf_keras.callbacks.Callback):
  """Unties the model's `SharedWeightsOptimizer` at its `untie_step`.

  It also copies the stems to their branches before the first update, and makes
  Keras recompile the train step when the phase changes.

  For example:

      optimizer = swe_tf.SharedWeightsOptimizer(inner, plan, untie_step=100)
      model.compile(optimizer=optimizer, loss="mse")
      model.fit(dataset, callbacks=[swe_tf.UntieCallback()])
  """

  def set_model(self, model):
    super().set_model(model)
    self._of_keras3 = None
    if keras_family.is_keras3(model):
      self._of_keras3 = keras_family.keras3("UntieCallback")()
      self._of_keras3.set_model(model)

  def on_train_begin(self, logs=None):
    if self._of_keras3:
      self._of_keras3.on_train_begin(logs)
      return
    compiled = self.model.optimizer
    found = wrapper.find_wrapper(compiled)
    shares = isinstance(found, optimizer_lib.SharedWeightsOptimizer)
    optimizer = keras_family.require_untie_step(
      found if shares else None, compiled
    )
    self._optimizer, self._untie_step = optimizer, optimizer.untie_step
    if not optimizer.has_plan:  # Keras builds only some loaded optimizers.
      optimizer.build(self.model.trainable_variables)
    if optimizer.compiled_phase not in (None, optimizer.phase):
      self.model.make_train_function(force=True)  # A state was loaded.
    if optimizer.phase != optimizer_lib.SHARED:
      return
    step = int(optimizer.iterations.numpy())
    if step == 0:
      optimizer.begin()
    stride = int(self.model._steps_per_execution.numpy())  # pylint: disable=protected-access
    ahead = max(self._untie_step - step, 0)
    # An epoch ends with a shorter execution if the stride does not divide it.
    steps = (self.params or {}).get("steps") or 0
    if (ahead % steps if steps else ahead) % stride:
      raise errors.UsageError(
        f"untie_step ({self._untie_step}) must be a multiple of "
        f"steps_per_execution ({stride}) away from the current step ({step}), "
        f"counted anew in each epoch (of {steps or 'unknown'} steps), since "
        "Keras returns control only there."
      )
    self._untie_if_due()

  def on_train_batch_end(self, batch, logs=None):
    if self._of_keras3:
      self._of_keras3.on_train_batch_end(batch, logs)
    else:
      self._untie_if_due()

  def _untie_if_due(self):
    if self._optimizer.phase != optimizer_lib.SHARED:
      return
    step = int(self._optimizer.iterations.numpy())
    if step >= self._untie_step:
      self._optimizer.untie()
      self.model.make_train_function(force=True)
      logging.info("Untied the weights after step %d.", step)
