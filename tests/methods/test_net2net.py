"""Widening: the same function, the right slots, an end of the symmetry.

And growth under replicas and reduced precision; two workers are in
`tests/end_to_end/test_multi_worker.py`.
"""

import gc
import weakref

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from official.modeling import hyperparams
from official.modeling.optimization import legacy_adamw
from swe_tf import errors
from swe_tf.methods import net2net
from swe_tf.modeling import checkpoint_files
from swe_tf.sharing import plan
from swe_tf.sharing import slots
from tests import tiny
from tests.methods import bert

_VARIANTS = {
  "pre_ln": {},
  "post_ln": {"norm_first": False},
  "factorized": {"embedding_size": 6},
}
_GROWTH = {
  "task": {
    "sharing": {"mode": "none"},
    "growth": {"method": "net2net", "fractions": [0.25]},
  },
}
_NINE = {"hidden_size": 9, "num_attention_heads": 3}
_STACKING = {"method": "stacking", "fractions": None}


def _pair(**encoder):
  config = bert.config_of(**encoder)
  wide = bert.build_model(config)
  narrow = bert.build_model(config, net2net.halve_width(config.task.model))
  bert.randomize(narrow)
  return config, narrow, wide


def _logit_difference(config, narrow, wide):
  inputs = bert.batch(config)
  ours, theirs = (m(inputs)["mlm_logits"].numpy() for m in (narrow, wide))
  return np.max(np.abs(ours - theirs))


class WidenTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.named_parameters(_VARIANTS.items())
  def test_computes_the_same(self, encoder):
    config, narrow, wide = _pair(**encoder)
    self.assertGreater(_logit_difference(config, narrow, wide), 0.1)
    net2net.widen(narrow, wide)
    self.assertLessEqual(_logit_difference(config, narrow, wide), 1e-4)
    inputs = bert.batch(config)
    ours, theirs = wide(inputs), narrow(inputs)
    self.assertAllClose(
      ours["next_sentence"], theirs["next_sentence"], atol=1e-5
    )
    for name in ("sequence_output", "pooled_output"):
      twice = tf.concat([theirs[name]] * 2, axis=-1)
      self.assertAllClose(ours[name], twice, atol=1e-5)

  @parameterized.named_parameters(_VARIANTS.items())
  def test_slots_are_those_that_the_wide_model_would_have_had(self, encoder):
    """And so gradients are the multiples that the slots were made with."""
    config, narrow, wide = _pair(**encoder)
    net2net.widen(narrow, wide)

    def train(model):
      # Weights stay, so that both models see the same gradients.
      optimizer = legacy_adamw.AdamWeightDecay(0.0, gradient_clip_norm=0.0)
      for seed in range(3):
        grads = bert.gradients(model, bert.batch(config, seed))
        optimizer.apply_gradients(
          (g, v)
          for g, v in zip(grads, model.trainable_variables)
          if g is not None
        )
      return optimizer

    expected, optimizer = train(wide), train(narrow)
    net2net.widen(narrow, wide, optimizer)
    compared = 0
    for v in wide.trainable_variables:
      self.assertEqual(
        slots.has_slots(optimizer, v), slots.has_slots(expected, v)
      )
      if slots.has_slots(expected, v):
        ours, theirs = (slots.slots_of(o, v) for o in (optimizer, expected))
        for name, power in (("m", 1.0), ("v", 0.5)):
          compared += 1
          a, b = (
            np.sign(s[name]) * np.abs(s[name].numpy()) ** power
            for s in (ours, theirs)
          )
          # A key's bias cancels in the softmax: its gradient is rounding.
          atol = 1e-3 * np.max(np.abs(b)) + 1e-8
          self.assertAllClose(a, b, 0.0, atol, msg=f"{v.name} {name}")
    self.assertGreater(compared, 20)

  def test_noise_breaks_the_symmetry_and_follows_the_seed(self):
    config, narrow, wide = _pair()

    def widened(noise, seed):
      net2net.widen(narrow, wide, noise=noise, seed=seed)
      return [v.numpy() for v in wide.variables]

    exact = widened(0.0, seed=0)
    noisy = widened(0.01, seed=0)
    self.assertAllEqual(noisy[0], widened(0.01, seed=0)[0])
    self.assertNotAllEqual(noisy[0], widened(0.01, seed=1)[0])
    relative = [
      np.std(a - b) / np.std(b) for a, b in zip(noisy, exact) if b.size > 100
    ]
    self.assertAllClose(relative, [0.01] * len(relative), rtol=0.3)
    half = noisy[0].shape[-1] // 2
    self.assertNotAllEqual(noisy[0][:, :half], noisy[0][:, half:])
    self.assertLessEqual(_logit_difference(config, narrow, wide), 0.5)


class RunTest(tf.test.TestCase, parameterized.TestCase):
  def _runner(self, *overrides, **kwargs):
    directory = self.create_tempdir().full_path
    config = tiny.config_of(tiny.written(directory), _GROWTH, *overrides)
    return tiny.make_runner(config, f"{directory}/run", **kwargs)

  def test_evaluates_the_model_of_the_phase_and_frees_the_narrow_one(self):
    exactly = {"task": {"growth": {"noise": 0.0}}}
    trainer = self._runner(exactly, mode="train_and_eval").trainer
    inner = trainer.optimizer
    two = tf.constant(2)
    self.assertEqual(trainer.train(two)["growth/size"], 4.0)
    trainer.evaluate(two)
    narrow = weakref.ref(trainer.model)
    width = narrow().encoder_network.get_config()["hidden_size"]
    self.assertEqual(width, 4)
    narrow_slots = [plan.variable_key(v) for v in narrow().variables]
    self.assertFalse(set(narrow_slots).isdisjoint(inner._slots))  # pylint: disable=protected-access
    self.assertEqual(trainer.train(tf.constant(1))["growth/stage"], 1.0)
    self.assertIs(trainer.model, trainer.checkpoint.model)
    self.assertTrue(set(narrow_slots).isdisjoint(inner._slots))  # pylint: disable=protected-access
    gc.collect()
    self.assertIsNone(narrow())
    first = trainer.evaluate(two)["validation_loss"].numpy()
    trainer.train(two)
    second = trainer.evaluate(two)["validation_loss"].numpy()
    self.assertNotEqual(first, second)
    trainer.checkpoint.growth.stage.assign(0)  # As an early checkpoint does.
    with self.assertRaisesRegex(errors.Failed, "before the model was widened"):
      trainer._phases.on_rollback()  # pylint: disable=protected-access

  def test_what_has_not_grown_is_not_exported(self):
    runner = self._runner()
    path = f"{runner.model_dir}/params.yaml"
    runner.controller.train(2)
    hyperparams.save_params_dict_to_yaml(runner.trainer.config, path)
    manager = runner.checkpoint_manager
    with self.assertRaisesRegex(errors.UsageError, "before the model has grow"):
      checkpoint_files.load_encoder(manager.latest_checkpoint)
    runner.controller.train(4)
    checkpoint_files.load_encoder(manager.latest_checkpoint)

  def test_new_optimizers_are_refused(self):
    new = {"optimizer_config": {"optimizer": {"type": "adam_experimental"}}}
    with self.assertRaisesRegex(errors.UsageError, "legacy optimizer"):
      self._runner({"trainer": new})


class CheckTest(parameterized.TestCase):
  @parameterized.parameters(
    (r"method \('wider'\) must be on", {"method": "wider"}),
    (r"\[0.1, 0.2\]\) must be 1", {"fractions": [0.1, 0.2]}),
    ("fractions is set, but", {"method": "none"}),
    ("ascending", {"method": "stacking", "fractions": [0.3, 0.1]}),
    (r"'swe': a model that grows", {}, {"mode": "swe"}),
    ("hidden_size .9. must be divisible by 2", {}, {}, _NINE),
    ("num_layers .6. must be divisible by 4", _STACKING, {}, {"num_layers": 6}),
    ("ema is set", {}, {}, {}, {"ema": {"average_decay": 0.9}}),
  )
  def test_is_refused_before_any_work(
    self, message, growth, sharing=None, encoder=None, optimization=None
  ):
    task = {"growth": growth, "sharing": sharing or {}}
    task |= tiny.encoder(**(encoder or {}))
    trainer = {"optimizer_config": optimization or {}}
    base, change = tiny.overrides("none"), {"task": task, "trainer": trainer}
    with self.assertRaisesRegex(errors.UsageError, message):
      tiny.config_of(base, _GROWTH, change)
