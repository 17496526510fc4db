"""A Pre-LN transformer block and learned positions, in plain Keras."""

import tensorflow as tf
import tf_keras

layers = tf_keras.layers


class TransformerBlock(layers.Layer):
  """Attention and an MLP, each with a layer norm before and a residual."""

  def __init__(self, width: int, heads: int, causal: bool = False):
    super().__init__()
    self._causal = causal
    self._attention_norm = layers.LayerNormalization(epsilon=1e-6)
    self._attention = layers.MultiHeadAttention(heads, width // heads)
    self._mlp_norm = layers.LayerNormalization(epsilon=1e-6)
    self._expand = layers.Dense(2 * width, activation=tf.nn.gelu)
    self._contract = layers.Dense(width)

  def call(self, x):
    y = self._attention_norm(x)
    x = x + self._attention(y, y, use_causal_mask=self._causal)
    return x + self._contract(self._expand(self._mlp_norm(x)))


class Positions(layers.Layer):
  """Adds a learned vector to each position of a sequence."""

  def build(self, shape):
    self._table = self.add_weight("positions", shape[1:], initializer="normal")

  def call(self, x):
    return x + self._table
