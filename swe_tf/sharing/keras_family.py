"""Which Keras an object is of: Keras 3 or tf_keras. Imports what is asked for.

`swe_tf` has one set of names for both. They are two packages whose objects do
not mix, so every entry point asks here first.
"""

from collections.abc import Iterable
import importlib
import os
import sys
from typing import Any

from swe_tf import errors

# The names that exist for either Keras, and where they are for Keras 3.
NAMES = {
  "SharedWeightsOptimizer": "swe_tf.sharing.keras3",
  "UntieCallback": "swe_tf.sharing.keras3_callback",
}


def is_keras3(value: object) -> bool:
  """Returns whether `value` is a layer, model, optimizer... of Keras 3."""
  return any(
    cls.__module__.partition(".")[0] == "keras" for cls in type(value).__mro__
  )


def layer_class(layers: Iterable[object]) -> type:
  """Returns the class of all layers: of Keras 3 if any of them is."""
  is_new = any(map(is_keras3, layers)) or is_on_jax()
  return importlib.import_module("keras" if is_new else "tf_keras").layers.Layer


def copy_of(variable: Any) -> Any:
  """Returns the value of a variable, in memory of its own."""
  if not is_keras3(variable):
    return variable.read_value()
  # JAX donates the buffers of variables, so no two may have the same one.
  return importlib.import_module("keras").ops.copy(variable.value)


def require_untie_step(optimizer: Any, compiled: Any) -> Any:
  """Returns the optimizer in what a model was `compiled` with, if it unties."""
  if optimizer is None:
    raise errors.UsageError(
      "UntieCallback needs a model that was compiled with a "
      f"SharedWeightsOptimizer, got {type(compiled).__name__}."
    )
  if optimizer.untie_step is None:
    raise errors.UsageError(
      "UntieCallback needs an untie_step: "
      "SharedWeightsOptimizer(inner, plan, untie_step=...)."
    )
  return optimizer


def keras3(name: str):
  """Returns the class of that name for Keras 3, which is imported now."""
  return getattr(importlib.import_module(NAMES[name]), name)


def is_on_jax() -> bool:
  """Returns whether this process has to do with Keras 3 on JAX, so far.

  If so, neither tf_keras nor TensorFlow need be imported. On TensorFlow, who
  imported Keras 3 may still import tf_keras: our names then take either.
  """
  backend = os.environ.get("KERAS_BACKEND")
  if "keras" in sys.modules:
    backend = importlib.import_module("keras").config.backend()
  return backend == "jax" and "tf_keras" not in sys.modules
