"""The exact GELU, under a name that Model Garden's configs can use.

Model Garden's `gelu` is the tanh approximation; Hugging Face's is the exact
one. They differ by up to 5e-4 per activation, which shows in hidden states.
Importing this module registers the name.
"""

import tf_keras

# The value of `hidden_activation` in an encoder config.
EXACT_GELU = "swe_tf>exact_gelu"


@tf_keras.utils.register_keras_serializable(package="swe_tf")
def exact_gelu(x):
  """Returns `x` times the normal distribution function of `x`."""
  return tf_keras.activations.gelu(x, approximate=False)
