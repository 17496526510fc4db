"""Stacking against models that really are shallower, or deeper."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

from official.modeling.optimization import legacy_adamw
from official.nlp.configs import encoders
from swe_tf.methods import stacking
from swe_tf.sharing import slots
from tests.methods import bert

_LAYERS = 4


def _with_layers(config, num_layers):
  encoder = config.task.model.encoder.replace(any={"num_layers": num_layers})
  return config.task.model.replace(encoder=encoder)


def _phases(config, model, optimizer=None, steps=(1, 2)):
  phases = stacking.StackingPhases(
    model,
    optimizer or legacy_adamw.AdamWeightDecay(0.01),
    steps,
    build_encoder=lambda n: encoders.build_encoder(
      _with_layers(config, n).encoder
    ),
  )
  phases.begin()
  return phases


def _copy_by_hand(model, other, block_of):
  """Gives `other` the weights of `model`, its block i those of block_of[i]."""
  ours, theirs = model.encoder_network, other.encoder_network
  pairs = [
    (layer, getattr(theirs, name))
    for name, layer in vars(ours).items()
    if isinstance(layer, tf_keras.layers.Layer)
  ]
  pairs.append((model.masked_lm, other.masked_lm))
  pairs += zip(model.classification_heads, other.classification_heads)
  pairs += [
    (ours.transformer_layers[block_of[i]], block)
    for i, block in enumerate(theirs.transformer_layers)
  ]
  for layer, copy in pairs:
    copy.set_weights(layer.get_weights())


def _train(model, optimizer, config, seeds=range(3)):
  for seed in seeds:
    grads = bert.gradients(model, bert.batch(config, seed))
    optimizer.apply_gradients(
      (g, v) for g, v in zip(grads, model.trainable_variables) if g is not None
    )


class StackingTest(tf.test.TestCase, parameterized.TestCase):
  def _model(self, norm_first=True):
    config = bert.config_of(num_layers=_LAYERS, norm_first=norm_first)
    model = bert.build_model(config)
    bert.randomize(model)
    return config, model

  @parameterized.product(norm_first=(True, False), num_layers=(1, 2))
  def test_a_view_is_a_shallower_model(self, norm_first, num_layers):
    config, model = self._model(norm_first)
    phases = _phases(config, model)
    if num_layers == 2:
      phases._saved.stage.assign(1)  # pylint: disable=protected-access
    view = phases.model
    shallow = bert.build_model(config, _with_layers(config, num_layers))
    _copy_by_hand(model, shallow, block_of=range(num_layers))
    inputs = bert.batch(config)
    ours, theirs = view(inputs), shallow(inputs)
    for name in ("mlm_logits", "pooled_output", "next_sentence"):
      self.assertAllEqual(ours[name], theirs[name])
    self.assertLen(ours["encoder_outputs"], num_layers)
    self.assertLen(model(inputs)["encoder_outputs"], _LAYERS)
    self.assertEqual(
      [v.shape for v in view.trainable_variables],
      [v.shape for v in shallow.trainable_variables],
    )
    # Only the pooler is never reached, as in the stock model.
    idle = [
      v.name
      for g, v in zip(bert.gradients(view, inputs), view.trainable_variables)
      if g is None
    ]
    self.assertLen(idle, 2)

  def test_a_shallow_step_is_that_of_a_shallower_model(self):
    config, model = self._model()
    ours, theirs = (
      legacy_adamw.AdamWeightDecay(
        0.01, weight_decay_rate=0.1, gradient_clip_norm=0.5
      )
      for _ in range(2)
    )
    shallow = bert.build_model(config, _with_layers(config, 1))
    _copy_by_hand(model, shallow, block_of=[0])
    view = _phases(config, model, ours).model
    _, *idle = model.encoder_network.transformer_layers
    before = [block.get_weights() for block in idle]
    _train(view, ours, config)
    _train(shallow, theirs, config)
    for v, w in zip(view.trainable_variables, shallow.trainable_variables):
      self.assertAllClose(v, w, atol=1e-6)
      if slots.has_slots(theirs, w):
        for name, slot in slots.slots_of(theirs, w).items():
          self.assertAllClose(slots.slots_of(ours, v)[name], slot, atol=1e-6)
    for block, weights in zip(idle, before):
      for v, w in zip(block.trainable_variables, weights):
        self.assertAllEqual(v, w)
        self.assertFalse(slots.has_slots(ours, v))

  @parameterized.parameters(True, False)
  def test_stacked_is_the_deeper_model_with_blocks_repeated(self, norm_first):
    config, model = self._model(norm_first)
    optimizer = legacy_adamw.AdamWeightDecay(0.01)
    phases = _phases(config, model, optimizer)
    _train(phases.model, optimizer, config)
    for step, num_layers, said in (
      (1, 2, "stacked 1 to 2 layers after step 1"),
      (2, 4, "stacked 2 to 4 layers after step 2"),
    ):
      deeper = bert.build_model(config, _with_layers(config, num_layers))
      half = num_layers // 2
      _copy_by_hand(model, deeper, block_of=[*range(half)] * 2)
      self.assertEqual(phases.change_if_due(step), said)
      grown = phases.model or model
      inputs = bert.batch(config)
      self.assertAllEqual(
        grown(inputs)["mlm_logits"], deeper(inputs)["mlm_logits"]
      )
      blocks = model.encoder_network.transformer_layers
      for below, above in zip(blocks[:half], blocks[half:num_layers]):
        for v, w in zip(below.trainable_variables, above.trainable_variables):
          for name, slot in slots.slots_of(optimizer, v).items():
            self.assertAllEqual(slots.slots_of(optimizer, w)[name], slot)
            self.assertTrue(np.any(slot))
      _train(grown, optimizer, config)
    self.assertIsNone(phases.model)
    self.assertIsNone(phases.next_decision(2))

  def test_decides_at_each_step_and_catches_up(self):
    config, model = self._model()
    optimizer = legacy_adamw.AdamWeightDecay(0.01)
    phases = _phases(config, model, optimizer, steps=(3, 6))
    self.assertEqual([phases.next_decision(s) for s in (0, 3, 6)], [3, 6, None])
    self.assertIsNone(phases.change_if_due(2))
    names = [phases.name]
    self.assertIn("1 to 2 layers, stacked 2 to 4", phases.change_if_due(7))
    names.append(phases.name)
    self.assertEqual(names, ["1 of 4 layers", "4 of 4 layers"])
    self.assertEqual(phases.logs(), {"growth/stage": 2.0, "growth/size": 4.0})
