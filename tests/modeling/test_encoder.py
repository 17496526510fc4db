"""The final layer norm, the builder, and saving."""

import dataclasses

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tf_keras

from official.nlp.configs import encoders
from official.nlp.modeling import networks
from swe_tf.modeling import encoder

_SMALL = dict(
  vocab_size=50,
  hidden_size=16,
  num_layers=3,
  num_attention_heads=2,
  inner_dim=32,
  max_sequence_length=12,
  # Wide, so that what is not normalised is far from it.
  initializer=tf_keras.initializers.TruncatedNormal(stddev=0.5, seed=0),
)
# Nearly the same size as a config.
_NAMES = ("vocab_size", "hidden_size", "num_attention_heads")
_FIELDS = {name: _SMALL[name] for name in _NAMES}
_FIELDS |= {"num_layers": 2, "intermediate_size": 32}


def inputs(batch=4, length=12):
  rng = np.random.default_rng(0)
  return dict(
    input_word_ids=tf.constant(rng.integers(50, size=(batch, length))),
    input_mask=tf.ones([batch, length], tf.int32),
    input_type_ids=tf.zeros([batch, length], tf.int32),
  )


class PreLnBertEncoderTest(tf.test.TestCase, parameterized.TestCase):
  def test_is_the_stock_encoder_with_a_norm_before_pooler_and_heads(self):
    ours = encoder.PreLnBertEncoder(**_SMALL)
    stock = networks.BertEncoderV2(norm_first=True, **_SMALL)
    ours(inputs()), stock(inputs())  # Builds them.
    norm = ours.final_layer_norm
    stock.set_weights(
      [w.numpy() for w in ours.weights if all(w is not v for v in norm.weights)]
    )
    # Scale and shift that can be seen.
    norm.set_weights([np.linspace(0.5, 2, 16), np.linspace(-1, 1, 16)])
    outputs, expected = ours(inputs()), stock(inputs())
    sequence = norm(expected["sequence_output"])
    self.assertNotAllClose(sequence, expected["sequence_output"])
    self.assertAllClose(outputs["sequence_output"], sequence)
    self.assertAllClose(outputs["encoder_outputs"][-1], sequence)
    self.assertLen(outputs["encoder_outputs"], 3)
    self.assertAllClose(
      outputs["pooled_output"], stock.pooler_layer(sequence[:, 0])
    )
    for ours_i, stock_i in zip(
      outputs["encoder_outputs"][:-1], expected["encoder_outputs"][:-1]
    ):
      self.assertAllClose(ours_i, stock_i)

  def test_post_ln_is_refused_and_arguments_have_names(self):
    with self.assertRaisesRegex(ValueError, "norm_first=False"):
      encoder.PreLnBertEncoder(vocab_size=50, norm_first=False)
    with self.assertRaises(TypeError):
      encoder.PreLnBertEncoder(50, 16)  # Would be norm_first=16.

  @parameterized.parameters("model", "model.keras")
  def test_is_the_same_after_saving(self, name):
    # The default, a lambda, can be saved by nobody.
    changed = {
      "num_layers": 1,
      "embedding_width": 8,
      "inner_activation": "relu",
    }
    net = encoder.PreLnBertEncoder(**(_SMALL | changed))
    model = tf_keras.Model(net.inputs, net(net.inputs))
    net.final_layer_norm.set_weights(
      [np.linspace(0.5, 2, 16), np.linspace(-1, 1, 16)]
    )
    path = f"{self.get_temp_dir()}/{name}"
    model.save(path)
    loaded = tf_keras.models.load_model(path)
    # The mask of a padded sequence matters too.
    data = inputs()
    data["input_mask"] *= tf.sequence_mask([12, 5, 1, 7], 12, tf.int32)
    self.assertAllClose(
      model(data)["pooled_output"], loaded(data)["pooled_output"]
    )


class BuildEncoderTest(tf.test.TestCase):
  def build(self, **fields):
    return encoders.build_encoder(
      encoders.EncoderConfig(type="any", any=encoder.EncoderConfig(**fields))
    )

  def test_every_field_arrives(self):
    fields = _FIELDS | dict(
      hidden_activation="relu",
      intermediate_size=48,
      dropout_rate=0.3,
      attention_dropout_rate=0.4,
      max_position_embeddings=12,
      type_vocab_size=5,
      initializer_range=0.7,
      embedding_size=8,
      output_range=1,
      return_attention_scores=True,
      return_word_embeddings=True,
    )
    # All fields but those that `BertEncoderV2` knows nothing of.
    names = {f.name for f in dataclasses.fields(encoder.EncoderConfig)}
    self.assertEqual(
      names - set(fields), {"norm_first", "return_all_encoder_outputs"}
    )
    config = self.build(**fields).get_config()
    self.assertEqual(config["inner_activation"], "relu")
    self.assertEqual(config["initializer"]["config"]["stddev"], 0.7)
    renamed = {
      "intermediate_size": "inner_dim",
      "dropout_rate": "output_dropout",
      "attention_dropout_rate": "attention_dropout",
      "max_position_embeddings": "max_sequence_length",
      "embedding_size": "embedding_width",
    }
    for name in set(fields) - {"hidden_activation", "initializer_range"}:
      self.assertEqual(config[renamed.get(name, name)], fields[name], name)

  def test_pre_ln_by_default_and_post_ln_is_the_stock_class(self):
    self.assertIsInstance(self.build(**_FIELDS), encoder.PreLnBertEncoder)
    post_ln = self.build(norm_first=False, **_FIELDS)
    self.assertIs(type(post_ln), networks.BertEncoderV2)
    self.assertFalse(post_ln.get_config()["norm_first"])
