"""Sharing Weights and then Unsharing (SWE) for TensorFlow Model Garden.

The names below are the public contract. They are looked up on first use, so
that a command that needs no TensorFlow (`swe theory`, `swe score`) starts in a
fraction of a second, and that neither Keras is imported before it is needed.
"""

import importlib
import sys

from swe_tf.sharing import keras_family

__version__ = "0.1.0"

_EXPORTS = {
  "SharingPlan": "swe_tf.sharing.plan",
  "SharedWeightsOptimizer": "swe_tf.sharing.optimizer",
  "SharedWeightsTrainer": "swe_tf.training.trainer",
  "UntieCallback": "swe_tf.sharing.callback",
  "UntieRule": "swe_tf.sharing.schedule",
  "UntieAtStep": "swe_tf.sharing.schedule",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name):
  if name not in _EXPORTS:
    raise AttributeError(f"module 'swe_tf' has no attribute {name!r}")
  if name in keras_family.NAMES:
    if keras_family.is_on_jax():
      return keras_family.keras3(name)
    if "keras" in sys.modules:
      keras_family.keras3(name)  # From now on Keras can load it.
  return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__():
  return sorted(__all__)
