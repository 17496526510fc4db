"""Sharing in `fit` of Keras 3: compiles the step again at untying."""

from absl import logging
import keras

from swe_tf.sharing import keras3
from swe_tf.sharing import keras_family


class UntieCallback(keras.callbacks.Callback):
  """Compiles the step of `fit` again when the weights are untied.

  The unshared step is then that of the inner optimizer alone. It also copies
  the stems to their branches before the first update, which matters if weights
  were loaded after the optimizer was built.
  """

  def on_train_begin(self, logs=None) -> None:
    del logs
    compiled = self.model.optimizer
    optimizer = keras_family.require_untie_step(keras3.find(compiled), compiled)
    self._optimizer, self._tau = optimizer, optimizer.untie_step
    self._left = 0
    if (
      optimizer.built
      and optimizer.phase == keras3.SHARED
      and not optimizer.batches
    ):
      optimizer.plan.tie_weights()
    if optimizer.compiled_phase not in (None, optimizer.phase):
      self.model.make_train_function(force=True)  # A state was loaded.

  def on_train_batch_end(self, batch, logs=None) -> None:
    del batch, logs
    # On JAX, `self.model` takes the state out of `fit`: not in every step.
    self._left -= self._model.steps_per_execution
    if self._left > 0 or self._optimizer.compiled_phase == keras3.UNSHARED:
      return
    model, optimizer = self.model, self._optimizer
    if optimizer.phase == keras3.SHARED:
      per_update = optimizer.gradient_accumulation_steps or 1
      self._left = self._tau * per_update - (optimizer.batches or 0)
      return
    model.make_train_function(force=True)
    logging.info("Untied the weights after step %d.", optimizer.untied_at)
