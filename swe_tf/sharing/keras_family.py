"""Which Keras an object is of: Keras 3 or tf_keras. Imports neither.

`swe_tf` has one set of names for both. They are two packages whose objects do
not mix, so every entry point asks here first.
"""

import importlib
import os
import sys

# The names that exist for either Keras, and where they are for Keras 3.
NAMES = {
  "SharingPlan": "swe_tf.sharing.keras3_plan",
  "SharedWeightsOptimizer": "swe_tf.sharing.keras3",
  "UntieCallback": "swe_tf.sharing.keras3_callback",
}


def is_keras3(value: object) -> bool:
  """Returns whether `value` is a layer, model, optimizer... of Keras 3."""
  return any(
    cls.__module__.partition(".")[0] == "keras" for cls in type(value).__mro__
  )


def keras3(name: str):
  """Returns the class of that name for Keras 3, which is imported now."""
  return getattr(importlib.import_module(NAMES[name]), name)


def only_keras3() -> bool:
  """Returns whether this process has to do with Keras 3, and not with tf_keras.

  If so, tf_keras need not be imported, nor TensorFlow with the JAX backend.
  """
  asked = "keras" in sys.modules or os.environ.get("KERAS_BACKEND") == "jax"
  return asked and "tf_keras" not in sys.modules
