"""BERT with the layer norms before the blocks (Pre-LN) and one after the last.

Model Garden's `BertEncoderV2(norm_first=True)` lacks the last one; the paper
(section 5.1) calls a Pre-LN without it incorrect. This is a thin subclass of
Model Garden's encoder, with its embeddings, blocks and pooler.
"""

import dataclasses

import tf_keras

from official.modeling import tf_utils
from official.modeling.hyperparams import base_config
from official.nlp.configs import encoders
from official.nlp.modeling import networks

# For `hidden_activation`. Model Garden's `gelu` is the tanh approximation, the
# one of Hugging Face is exact: up to 5e-4 apart, which shows in hidden states.
EXACT_GELU = "swe_tf>exact_gelu"


@tf_keras.utils.register_keras_serializable(package="swe_tf")
def exact_gelu(x):
  """Returns `x` times the normal distribution function of `x`."""
  return tf_keras.activations.gelu(x, approximate=False)


@tf_keras.utils.register_keras_serializable(package="swe_tf")
class PreLnBertEncoder(networks.BertEncoderV2):
  """Model Garden's encoder with Pre-LN blocks and the final layer norm.

  The final norm comes before the pooler and before whatever reads
  `sequence_output`. `encoder_outputs` holds the blocks' outputs as they are,
  except for the last, which is normalised.
  """

  def __init__(self, vocab_size: int, *, norm_first: bool = True, **kwargs):
    """See base class; `norm_first` is there because a saved config has it."""
    if not norm_first:
      raise ValueError(
        "PreLnBertEncoder is Pre-LN. For Post-LN use BertEncoderV2 "
        "(encoder.type=bert, or encoder.any.norm_first=False)."
      )
    super().__init__(vocab_size=vocab_size, norm_first=True, **kwargs)
    self._final_layer_norm = tf_keras.layers.LayerNormalization(
      name="final_layer_norm", axis=-1, epsilon=1e-12, dtype="float32"
    )

  @property
  def final_layer_norm(self) -> tf_keras.layers.LayerNormalization:
    return self._final_layer_norm

  def call(self, inputs):
    outputs = super().call(inputs)
    sequence = self._final_layer_norm(outputs["sequence_output"])
    outputs["sequence_output"] = sequence
    outputs["encoder_outputs"] = outputs["encoder_outputs"][:-1] + [sequence]
    # The base class pooled the output before the norm; that op is pruned.
    outputs["pooled_output"] = self._pooler_layer(sequence[:, 0, :])
    return outputs


@dataclasses.dataclass
class EncoderConfig(encoders.BertEncoderConfig):
  """An `EncoderConfig.any` for BERT, Pre-LN unless `norm_first` is False."""

  norm_first: bool = True


@base_config.bind(EncoderConfig)
def build_encoder(config: EncoderConfig) -> networks.BertEncoderV2:
  """Builds the encoder of an `EncoderConfig` whose type is `any`."""
  encoder_cls = (
    PreLnBertEncoder if config.norm_first else networks.BertEncoderV2
  )
  return encoder_cls(
    vocab_size=config.vocab_size,
    hidden_size=config.hidden_size,
    num_layers=config.num_layers,
    num_attention_heads=config.num_attention_heads,
    inner_dim=config.intermediate_size,
    inner_activation=tf_utils.get_activation(config.hidden_activation),
    output_dropout=config.dropout_rate,
    attention_dropout=config.attention_dropout_rate,
    max_sequence_length=config.max_position_embeddings,
    type_vocab_size=config.type_vocab_size,
    initializer=tf_keras.initializers.TruncatedNormal(
      stddev=config.initializer_range
    ),
    output_range=config.output_range,
    embedding_width=config.embedding_size,
    norm_first=config.norm_first,
    return_attention_scores=config.return_attention_scores,
    return_word_embeddings=config.return_word_embeddings,
  )
