"""The model sizes of the paper, and their cost in closed form.

Section 5.3.1 scales BERT-large to other widths: the feed-forward part and the
head size grow with the width, the number of heads stays. The formulas count
Pre-LN BERT with the final layer norm, the pooler and the masked LM head; no
TensorFlow is needed to evaluate them.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
  """The size of a BERT encoder; fields are named as in the encoder's config."""

  num_layers: int
  hidden_size: int
  num_attention_heads: int
  intermediate_size: int


SIZES: dict[str, Size] = {
  "base": Size(12, 768, 12, 3072),
  "large": Size(24, 1024, 16, 4096),
  "24x768": Size(24, 768, 16, 3072),
  "24x1536": Size(24, 1536, 16, 6144),
}


def parameter_count(
  size: Size, vocab_size: int = 30522, positions: int = 512, types: int = 2
) -> int:
  """Returns the number of parameters of the pre-training model.

  With width d, feed-forward width f, L blocks and V tokens:

      (V + positions + types) d + 2 d      embeddings and their norm
      L (4 d^2 + 2 d f + 9 d + f)          blocks with two norms each
      2 d                                  final norm
      d^2 + d                              pooler
      d^2 + 3 d + V                        masked LM head, its matrix tied

  >>> parameter_count(SIZES["large"])
  336226106
  """
  d = size.hidden_size
  embeddings = (vocab_size + positions + types) * d + 2 * d
  blocks = size.num_layers * block_parameter_count(size)
  head = d * d + 3 * d + vocab_size
  return embeddings + blocks + 2 * d + pooler_parameter_count(size) + head


def block_parameter_count(size: Size) -> int:
  d, f = size.hidden_size, size.intermediate_size
  return 4 * d * d + 2 * d * f + 9 * d + f


def pooler_parameter_count(size: Size) -> int:
  return size.hidden_size**2 + size.hidden_size


def training_flops(
  size: Size,
  sequences: int,
  seq_length: int = 512,
  predictions: int = 77,
  vocab_size: int = 30522,
) -> int:
  """Returns the FLOPs of the matrix products of a training run.

  A multiplication with its addition counts as 2, and the backward pass as twice
  the forward pass. For a sequence of n tokens with m predictions, forward:

      2 n L (4 d^2 + 2 d f)    projections and feed-forward
      4 n^2 L d                attention scores, and the values they weigh
      2 m (d^2 + d V)          masked LM head, on the predictions alone

  >>> flops = training_flops(SIZES["large"], sequences=500_000 * 512)
  >>> f"{flops:.2e}"
  '2.61e+20'
  """
  d, f = size.hidden_size, size.intermediate_size
  products = 2 * seq_length * size.num_layers * (4 * d * d + 2 * d * f)
  attention = 4 * seq_length**2 * size.num_layers * d
  head = 2 * predictions * (d * d + d * vocab_size)
  return 3 * sequences * (products + attention + head)
