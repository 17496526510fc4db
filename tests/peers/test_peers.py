"""Suites of others, as they are installed, with our classes for theirs.

Nothing is copied. A suite is loaded anew, so that the original is left alone;
`_NOT_FOR_US` has the tests that do not apply, each with its reason. Those of
encoders are in tests/modeling/test_encoder.py. No tests are in tf_keras's
wheel or sdist, and Orbit's are of its own fakes: they have no class of ours.
"""

import functools
import importlib.util
import sys
import types
import unittest
from unittest import mock

import gin
import keras
import pytest
import tensorflow as tf
from tensorflow.python.framework import config as tf_config

from official.core import base_trainer
from official.nlp.tasks import masked_lm
import swe_tf
from swe_tf.tasks import masked_lm as our_masked_lm
from swe_tf.training import trainer

pytestmark = pytest.mark.slow
# Not installed; only the tests of parameter servers ask for ports.
sys.modules.setdefault("portpicker", types.ModuleType("portpicker"))

_KERAS = (
  *("sgd", "adam", "adamw", "lion", "lamb", "adafactor", "adagrad", "adamax"),
  *("adadelta", "rmsprop", "ftrl", "nadam", "optimizer"),
)
_COUNTS = "counts the variables of the optimizer: ours has the phase, too"
_PRIVATE = "reads a private counter; `iterations` is tested beside it"
_WORKERS = "parameter servers are refused"
_NOT_FOR_US = {
  "sgd_SGDTest.test_single_step": _COUNTS,
  "nadam_NadamTest.test_build_with_empty_var_list": "nothing to train: refused",
  "optimizer_OptimizerTest.test_get_method": "asks for the class's own type",
  "optimizer_OptimizerTest.test_optimizer_auto_naming": "the name is ours",
  "optimizer_OptimizerTest.test_setting_lr_to_callable_untracks_lr_"
  "var": _COUNTS,
  "optimizer_OptimizerTest.test_gradient_accumulation": _PRIVATE,
  "optimizer_OptimizerTest.test_overwrite_with_gradient_with_gradient_"
  "accumulation": _PRIVATE,
  "masked_lm_MLMTaskTest.test_task": "its init_checkpoint is empty: refused",
  "base_trainer_TrainerTest.test_async_trainer_train": _WORKERS,
  "base_trainer_TrainerTest.test_async_trainer_validate": _WORKERS,
  "base_trainer_TrainerTest.test_base_async_trainer": _WORKERS,
}


def _load(name: str) -> types.ModuleType:
  spec = importlib.util.find_spec(name)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _cases(module: types.ModuleType, *patches, gin_bindings=()):
  """Yields the suite's test cases, run while the patches are in place."""
  for base in list(vars(module).values()):
    if not isinstance(base, type) or not issubclass(base, unittest.TestCase):
      continue

    class Peers(base):
      def setUp(self):
        super().setUp()
        for target, name, value in patches:
          self.enter_context(mock.patch.object(target, name, value))
        gin.parse_config(gin_bindings)
        self.addCleanup(gin.clear_config)
        # As its `main` does. Without it, stock may fail: the suite draws its
        # examples in a map whose calls run in parallel, in any order.
        if "determinism" in module.__name__:
          tf.config.experimental.enable_op_determinism()
          self.addCleanup(tf_config.disable_op_determinism)

    short = module.__name__.rpartition(".")[2].removesuffix("_test")
    Peers.__name__ = Peers.__qualname__ = f"{short}_{base.__name__}"
    for test in dir(base):
      why = _NOT_FOR_US.get(f"{Peers.__name__}.{test}")
      if why:
        setattr(Peers, test, unittest.skip(why)(lambda self: None))
    yield Peers.__name__, Peers


def _wrapped(cls):
  """Returns a class's stand-in, which makes it inside of our optimizer."""

  @functools.wraps(cls, updated=())
  def make(*args, **kwargs):
    nothing = swe_tf.SharingPlan((), unit_size=1, num_units=1)
    return swe_tf.SharedWeightsOptimizer(cls(*args, **kwargs), nothing)

  return make


def _wrap_all(module: types.ModuleType) -> types.ModuleType:
  """Wraps all optimizers that a module of Keras 3 names."""

  def ours(namespace):
    return {
      name: _wrapped(value)
      for name, value in vars(namespace).items()
      if isinstance(value, type)
      and issubclass(value, keras.optimizers.Optimizer)
    }

  vars(module).update(ours(module))
  if hasattr(module, "optimizers"):
    of_keras = module.optimizers
    module.optimizers = types.SimpleNamespace(**vars(of_keras) | ours(of_keras))
  return module


_TRAINER = (base_trainer, "Trainer", trainer.SharedWeightsTrainer)
_MLM = (
  (masked_lm, "MaskedLMTask", our_masked_lm.SharedMaskedLMTask),
  (
    masked_lm,
    "MaskedLMConfig",
    functools.partial(
      our_masked_lm.SharedMaskedLMConfig, sharing={"mode": "none"}
    ),
  ),
)
_OURS = "train_utils.create_trainer.trainer_cls = @SharedWeightsTrainer"
for _name in _KERAS:
  globals().update(
    _cases(_wrap_all(_load(f"keras.src.optimizers.{_name}_test")))
  )
globals().update(_cases(_load("official.core.base_trainer_test"), _TRAINER))
globals().update(
  _cases(_load("official.core.train_lib_test"), gin_bindings=(_OURS,))
)
for _name in ("masked_lm_test", "masked_lm_determinism_test"):
  globals().update(_cases(_load(f"official.nlp.tasks.{_name}"), *_MLM))
